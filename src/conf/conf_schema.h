/*
 * Every key of the configuration: one row each, and how to find them.
 * The walk, the checks, the printed configuration, what a change needs and
 * the options part of scalws.conf(5) are made from it.
 */
#ifndef CONF_CONF_SCHEMA_H
#define CONF_CONF_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/conf/conf.h"

/* What stands in the file, and the member it is kept in. */
enum conf_type {
	CONF_TYPE_BOOL,     /* true, false: bool */
	CONF_TYPE_NUMBER,   /* integer: unsigned, uint32_t or int */
	CONF_TYPE_BYTES,    /* "64K", 100: uint32_t or uint64_t */
	CONF_TYPE_DURATION, /* "5s": int, milliseconds */
	CONF_TYPE_STRING,   /* text without control bytes: const char * */
	CONF_TYPE_TEXT,     /* any text: const char * */
	CONF_TYPE_PATH,     /* file name, made absolute: const char * */
	CONF_TYPE_CHOICE,   /* one of `choices`: enum */
	CONF_TYPE_WORD,     /* one of `choices`: const char * */
	CONF_TYPE_STRINGS,  /* a text or a list: const char **, NULL at end */
	CONF_TYPE_PATHS,    /* the same of file names, made absolute */
	CONF_TYPE_PAIRS,    /* { NAME = "value"; } or [ "NAME=value" ]:
			     * const char ** of "NAME=value", NULL at end */
	CONF_TYPE_FIELDS,   /* { Name = "value"; }: struct conf_field */
	CONF_TYPE_RLIMITS,  /* { nofile = 4096; }: struct conf_limit */
	CONF_TYPE_RANGES,   /* [ "10.0.0.0/8" ]: struct addr_range */
	CONF_TYPE_SIGNAL,   /* "TERM": int */
	CONF_TYPE_UMASK,    /* "022": int */
	CONF_TYPE_GROUP,    /* keys of their own, members of the same object */
	CONF_TYPE_GROUPS,   /* { NAME = { ... }; }: conf_build.c */
	CONF_TYPE_LIST,     /* ( { ... }, ... ): conf_build.c */
	CONF_TYPE_NAME,     /* names an app or upstream: conf_build.c */
	CONF_TYPE_ABSENT,   /* planned; refused as "not in this build" */
};

/* For which runtimes a key of an app is; outside of apps CONF_FOR_ALL. */
#define CONF_FOR_PYTHON (1u << CONF_PYTHON)
#define CONF_FOR_NODE (1u << CONF_NODE)
#define CONF_FOR_PHP (1u << CONF_PHP)
#define CONF_FOR_COMMAND (1u << CONF_COMMAND)
#define CONF_FOR_ALL 15u

enum conf_needs {
	CONF_NEEDS_RELOAD,      /* taken over at once by `scalwsctl reload` */
	CONF_NEEDS_APP_RESTART, /* reload restarts the app */
	CONF_NEEDS_RESTART,     /* of scalwsd */
};

struct conf_key {
	/* "limits.header_bytes"; "*" stands for a name or a place in a list:
	 * "apps.*.module". The same path may have several rows for different
	 * runtimes. */
	const char *path;
	enum conf_type type;
	enum conf_needs needs;
	unsigned runtimes; /* CONF_FOR_...; 0 means all */
	unsigned required; /* CONF_FOR_...: those that cannot do without */
	int64_t min, max;  /* of the number, bytes or ms; of texts the length */
	bool or_zero;      /* below min, 0 is possible too: it switches off */
	const char *preset;      /* as in the file, without quotes; or NULL */
	const char *preset_text; /* for the manual, when it is worked out */
	const char *const *choices; /* NULL-terminated */
	bool none;                  /* "none" is NULL, and printed so */
	bool unstored;              /* conf_build.c reads it from the tree */
	size_t offset;              /* of the member */
	size_t width;               /* its size */
	size_t count_offset;        /* FIELDS, RLIMITS, RANGES: of the count */
	const char *help;           /* one or two sentences for the manual */
};

extern const struct conf_key conf_keys[];
extern const size_t conf_keys_count;

/* Is `key` directly below `prefix` ("apps.*"; "" is the top)? */
bool conf_schema_is_below(const struct conf_key *key, const char *prefix);
/* Its last part. */
const char *conf_schema_name(const struct conf_key *key);
/* Has the key a meaning for one of `runtimes`? */
bool conf_schema_is_for(const struct conf_key *key, unsigned runtimes);
/* The row of a name below `prefix`: one for `runtimes` if there is any, else
 * one for others; or NULL. */
const struct conf_key *conf_schema_find(
    const char *prefix, const char *name, unsigned runtimes);
/* The most similar name below `prefix`, or NULL when none is close. */
const char *conf_schema_nearest(
    const char *prefix, const char *name, unsigned runtimes);
/* "python", "python or node": the runtimes of a row. Returns `to`. */
const char *conf_schema_runtimes(unsigned runtimes, char to[64]);
const char *conf_schema_runtime_name(enum conf_runtime runtime);

#endif
