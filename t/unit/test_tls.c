/*
 * The parts of TLS that need no connection: names, certificates, ticket keys.
 */
#include <check.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/core/tls_mem.h"
#include "proxy/core/tls_names.h"
#include "proxy/core/tls_tickets.h"
#include "t/unit/run.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static const struct {
	const uint8_t *bytes;
	size_t len;
	const char *name; /* NULL: refused */
} names[] = {
	{ BYTES("\0\6\0\0\3a.b"), "a.b" },
	{ BYTES("\0\6\0\0\3A.B"), "a.b" },
	{ BYTES(""), NULL },
	{ BYTES("\0\0"), NULL },
	{ BYTES("\0\3\0\0\0"), NULL },     /* no name */
	{ BYTES("\0\6\1\0\3a.b"), NULL },  /* another type */
	{ BYTES("\0\7\0\0\3a.b"), NULL },  /* list too long */
	{ BYTES("\0\6\0\0\4a.b"), NULL },  /* name too long */
	{ BYTES("\0\6\0\0\2a.b"), NULL },  /* something behind it */
	{ BYTES("\0\6\0\0\3a\0b"), NULL }, /* bytes that no name has */
	{ BYTES("\0\6\0\0\3a b"), NULL },
	{ BYTES("\0\6\0\0\3a\377b"), NULL },
	{ BYTES("\0\6\0\0\3a.b\0\0"), NULL },
};

START_TEST(names_of_clients)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char text[TLS_NAME_MAX + 1];
		struct str name;
		int result =
		    tls_names_parse(names[i].bytes, names[i].len, text, &name);

		ck_assert_msg(
		    result == (names[i].name == NULL ? -1 : 0), "case %zu", i);
		if (names[i].name != NULL)
			ck_assert_str_eq(text, names[i].name);
	}
}
END_TEST

START_TEST(longest_name)
{
	uint8_t bytes[5 + TLS_NAME_MAX + 1];
	char text[TLS_NAME_MAX + 1];
	struct str name;

	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "\1\2\0\0\377", 5);
	ck_assert_int_eq(
	    tls_names_parse(bytes, 5 + TLS_NAME_MAX, text, &name), 0);
	ck_assert_uint_eq(name.len, TLS_NAME_MAX);
	memcpy(bytes, "\1\3\0\1\0", 5);
	ck_assert_int_eq(
	    tls_names_parse(bytes, 5 + TLS_NAME_MAX + 1, text, &name), -1);
}
END_TEST

START_TEST(certificates_for_a_name)
{
	/* RSA and ECDSA for one name, RSA for another. */
	static const int kinds[] = { 6, 408, 6 };

	ck_assert_uint_eq(tls_names_choose(kinds, 3, 3), 3);
	ck_assert_uint_eq(tls_names_choose(kinds, 3, 4), 4);
	ck_assert_uint_eq(tls_names_choose(kinds, 3, 6), 6);
	/* Two of a kind: the first in the file. */
	ck_assert_uint_eq(tls_names_choose(kinds, 3, 5), 1);
	/* For none of them: the first of each kind. */
	ck_assert_uint_eq(tls_names_choose(kinds, 3, 0), 3);
}
END_TEST

START_TEST(ticket_keys)
{
	static char bytes[80 * (TLS_TICKET_KEYS_MAX + 1)];
	struct tls_tickets tickets = { .count = 0 };
	static const size_t bad[] = { 0, 79, 81, 161, sizeof(bytes) };

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i / 80 + 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(
		    tls_tickets_parse(&tickets, (struct str){ bytes, bad[i] }),
		    -1);
	ck_assert_uint_eq(tickets.count, 0);
	ck_assert_int_eq(
	    tls_tickets_parse(&tickets, (struct str){ bytes, 240 }), 0);
	ck_assert_uint_eq(tickets.count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_ptr_eq(
		    tls_tickets_find(&tickets, (const uint8_t *)bytes + 80 * i),
		    &tickets.keys[i]);
	ck_assert_ptr_null(
	    tls_tickets_find(&tickets, (const uint8_t *)bytes + 240));
}
END_TEST

/* More pieces than are kept, twice over: each is one's own, zeroed or not, and
 * may become larger. */
START_TEST(memory_of_openssl)
{
	unsigned char *pieces[9];

	tls_mem_init();
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 9; i++) {
			pieces[i] = i % 2 == 0 ? OPENSSL_malloc(40)
					       : OPENSSL_zalloc(40);
			ck_assert_ptr_nonnull(pieces[i]);
			for (unsigned at = 0; i % 2 == 1 && at < 40; at++)
				ck_assert_uint_eq(pieces[i][at], 0);
			memset(pieces[i], (int)i + 1, 40);
		}
		pieces[4] = OPENSSL_realloc(pieces[4], 4000);
		ck_assert_ptr_nonnull(pieces[4]);
		for (unsigned i = 0; i < 9; i++)
			for (unsigned at = 0; at < 40; at++)
				ck_assert_uint_eq(pieces[i][at], i + 1);
		for (unsigned i = 0; i < 9; i++)
			OPENSSL_free(pieces[i]);
	}
	OPENSSL_free(NULL);
	ck_assert_ptr_null(OPENSSL_malloc(0));
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__)
START_TEST(memory_given_back_twice)
{
	void *volatile piece;

	tls_mem_init();
	piece = OPENSSL_malloc(40);
	OPENSSL_free(piece);
	OPENSSL_free(piece);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("tls");
	TCase *tcase = tcase_create("tls");

	tcase_add_test(tcase, names_of_clients);
	tcase_add_test(tcase, longest_name);
	tcase_add_test(tcase, certificates_for_a_name);
	tcase_add_test(tcase, ticket_keys);
	tcase_add_test(tcase, memory_of_openssl);
#if !defined(__SANITIZE_ADDRESS__)
	tcase_add_test_raise_signal(tcase, memory_given_back_twice, SIGABRT);
#endif
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
