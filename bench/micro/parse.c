/*
 * Parses one head many times, so that callgrind can count its instructions.
 * Built by `make bench/micro/parse`; not installed, no test.
 *
 *	valgrind --tool=callgrind bench/micro/parse small|browser|answer COUNT
 *
 * Two counts and a subtraction give the cost of one head without start-up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_parse.h"

static const char small[] = "GET /api/items/4711 HTTP/1.1\r\n"
			    "Host: www.example.com\r\n"
			    "User-Agent: wrk/4.2.0 (x86)\r\n"
			    "Accept: */*\r\n"
			    "Connection: keep-alive\r\n"
			    "\r\n";

static const char browser[] =
    "GET /shop/category/42?page=3&sort=price HTTP/1.1\r\n"
    "Host: www.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 "
    "Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;"
    "q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.example.com/shop/category/42?page=2\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Priority: u=0, i\r\n"
    "Connection: keep-alive\r\n"
    "\r\n";

static const char answer[] = "HTTP/1.1 200 OK\r\n"
			     "content-length: 27\r\n"
			     "content-type: application/json\r\n"
			     "cache-control: no-cache\r\n"
			     "\r\n";

static const struct h1_limits limits = { 8192, 32768, 100 };

static unsigned long
parse_requests(const char *head, size_t len, unsigned long count)
{
	static struct h1_request request;
	unsigned long fields = 0;
	const char *why;
	unsigned status;

	while (count-- > 0) {
		size_t scanned = 0, used;

		if (h1_parse_request(head, len, &limits, &scanned, &request,
			&used, &status, &why) != H1_DONE)
			abort();
		fields += request.headers.count;
	}
	return fields;
}

static unsigned long
parse_answers(unsigned long count)
{
	static struct h1_response response;
	unsigned long fields = 0;
	const char *why;

	while (count-- > 0) {
		size_t scanned = 0, used;

		if (h1_parse_response(answer, sizeof(answer) - 1, &limits,
			&scanned, &response, &used, &why) != H1_DONE)
			abort();
		fields += response.headers.count;
	}
	return fields;
}

int
main(int argc, char **argv)
{
	unsigned long count, fields;

	if (argc != 3) {
		fprintf(stderr, "usage: parse small|browser|answer COUNT\n");
		return 2;
	}
	count = strtoul(argv[2], NULL, 10);
	if (strcmp(argv[1], "small") == 0)
		fields = parse_requests(small, sizeof(small) - 1, count);
	else if (strcmp(argv[1], "browser") == 0)
		fields = parse_requests(browser, sizeof(browser) - 1, count);
	else
		fields = parse_answers(count);
	printf("%lu fields (%zu, %zu, %zu bytes)\n", fields, sizeof(small) - 1,
	    sizeof(browser) - 1, sizeof(answer) - 1);
	return 0;
}
