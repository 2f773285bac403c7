/*
 * Tree to struct conf, and the checks from one object to another.
 * After reading, before use. conf.c puts the steps together.
 */
#ifndef CONF_CONF_BUILD_H
#define CONF_CONF_BUILD_H

#include "src/conf/conf_walk.h"

/* Fill conf from conf->tree, in conf->arena. 0, or -1 with findings; then
 * conf may be looked at, but members may lack their values. */
int conf_build(struct conf *conf, struct conf_errors *errors, bool files);

/* Make conf->listeners of what the sites want (conf_listen.c). */
int conf_listen_build(struct conf *conf, struct conf_errors *errors);

/* What can be checked without files and users (sites and logs are parts of it);
 * and what cannot. */
void conf_check(const struct conf *conf, struct conf_errors *errors);
void conf_check_sites(const struct conf *conf, struct conf_errors *errors);
void conf_check_logs(const struct conf *conf, struct conf_errors *errors);
void conf_check_system(const struct conf *conf, struct conf_errors *errors);

#endif
