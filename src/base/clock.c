/*
 * Reading the clocks, and dates as text without locale, time zone or locks.
 * For deadlines and for log lines and header fields. Sets no timers.
 */
#include "src/base/clock.h"

#include <string.h>
#include <time.h>

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char days[] = "SunMonTueWedThuFriSat";

struct date {
	unsigned year, month, day; /* month 1-12, day 1-31 */
	unsigned hour, minute, second;
	unsigned weekday; /* 0 Sunday */
};

int64_t
clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
clock_now_ms(void)
{
	return clock_now_us() / 1000;
}

int64_t
clock_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The proleptic Gregorian calendar, counted in eras of 400 years from 1 March
 * of year 0 so that the leap day is the last of its year. What does not fit
 * into four digits is cut to the nearest that does. */
static struct date
date_of(int64_t wall_s)
{
	const int64_t last = INT64_C(253402300799); /* 9999-12-31T23:59:59Z */
	struct date date;
	unsigned second, day_number, era, day_of_era, year, day_of_year, m;

	if (wall_s < 0)
		wall_s = 0;
	if (wall_s > last)
		wall_s = last;
	second = (unsigned)(wall_s % 86400);
	day_number = (unsigned)(wall_s / 86400);
	date.hour = second / 3600;
	date.minute = second / 60 % 60;
	date.second = second % 60;
	date.weekday = (day_number + 4) % 7;

	day_number += 719468; /* from 0000-03-01 to 1970-01-01 */
	era = day_number / 146097;
	day_of_era = day_number % 146097;
	year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
		   day_of_era / 146096) /
	       365;
	day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
	m = (5 * day_of_year + 2) / 153; /* 0 March */
	date.day = day_of_year - (153 * m + 2) / 5 + 1;
	date.month = m < 10 ? m + 3 : m - 9;
	date.year = era * 400 + year + (date.month <= 2);
	return date;
}

static char *
put_number(char *to, unsigned value, unsigned digits)
{
	for (unsigned i = digits; i > 0; i--, value /= 10)
		to[i - 1] = (char)('0' + value % 10);
	return to + digits;
}

static char *
put_byte(char *to, char byte)
{
	*to = byte;
	return to + 1;
}

static char *
put_name(char *to, const char *names, unsigned index)
{
	memcpy(to, names + (size_t)index * 3, 3);
	return to + 3;
}

static char *
put_time(char *to, const struct date *date)
{
	to = put_number(to, date->hour, 2);
	to = put_byte(to, ':');
	to = put_number(to, date->minute, 2);
	to = put_byte(to, ':');
	return put_number(to, date->second, 2);
}

void
clock_put_iso(char *to, int64_t wall_ms)
{
	struct date date = date_of(wall_ms < 0 ? 0 : wall_ms / 1000);

	to = put_number(to, date.year, 4);
	to = put_byte(to, '-');
	to = put_number(to, date.month, 2);
	to = put_byte(to, '-');
	to = put_number(to, date.day, 2);
	to = put_byte(to, 'T');
	to = put_time(to, &date);
	to = put_byte(to, '.');
	to = put_number(to, wall_ms < 0 ? 0 : (unsigned)(wall_ms % 1000), 3);
	to = put_byte(to, 'Z');
	*to = '\0';
}

void
clock_put_http(char *to, int64_t wall_s)
{
	struct date date = date_of(wall_s);

	to = put_name(to, days, date.weekday);
	to = put_byte(to, ',');
	to = put_byte(to, ' ');
	to = put_number(to, date.day, 2);
	to = put_byte(to, ' ');
	to = put_name(to, months, date.month - 1);
	to = put_byte(to, ' ');
	to = put_number(to, date.year, 4);
	to = put_byte(to, ' ');
	to = put_time(to, &date);
	memcpy(to, " GMT", 4);
}

void
clock_put_clf(char *to, int64_t wall_s)
{
	struct date date = date_of(wall_s);

	to = put_number(to, date.day, 2);
	to = put_byte(to, '/');
	to = put_name(to, months, date.month - 1);
	to = put_byte(to, '/');
	to = put_number(to, date.year, 4);
	to = put_byte(to, ':');
	to = put_time(to, &date);
	memcpy(to, " +0000", 6);
}
