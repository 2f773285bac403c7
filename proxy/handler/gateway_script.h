/*
 * Which script answers for a path: PHP's front door.
 * Only files below the canonical document root are ever named to the
 * application server, and only those that exist.
 */
#ifndef HANDLER_GATEWAY_SCRIPT_H
#define HANDLER_GATEWAY_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

struct script_rules {
	const char *root;  /* absolute */
	const char *index; /* script of a directory: "index.php" */
	/* Answers for paths that are no file, below root; NULL: nobody. */
	const char *front_controller;
	/* The files are on another machine: decide by the text alone. */
	bool is_remote;
};

enum script_result {
	SCRIPT_FOUND,
	SCRIPT_NONE,      /* 404: no such script, or a file that is none */
	SCRIPT_DIRECTORY, /* it has an index: redirect to path + "/" */
	SCRIPT_BAD,       /* 400: bytes that no file name may have */
	SCRIPT_BROKEN,    /* 500: the root itself cannot be opened (errno) */
};

#define SCRIPT_ROOM 8192
/* Texts live in `room`. */
struct script {
	struct str document_root; /* canonical */
	struct str name;          /* "/i.php", as in the path */
	struct str filename;      /* canonical */
	struct str path_info;     /* behind the script, or empty */
	char room[SCRIPT_ROOM];
};

/* `path` is normalised and begins with a slash. The script is the longest
 * beginning of it, at a slash, that is a regular file and ends in ".php"; a
 * directory's index; else the front controller. Symbolic links may lead
 * anywhere below the root, not out of it. Opens no file's content. */
enum script_result script_find(const struct script_rules *rules,
    struct str path, struct script *script) MUST_CHECK;

#endif
