// Gives the time of day from two numbers of eight octets in a file: how many microseconds it is ahead,
// and 0; or the time in microseconds, and 1. Only
// what tells the wall clock is replaced. The system calls are made directly, as the time is asked
// for before libraries can be looked things up in.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *clock_page;

__attribute__((constructor)) static void look(void) {
	const char *name = getenv("REDISTEST_CLOCK");
	int file = name ? open(name, O_RDONLY) : -1;
	if (file < 0) return;
	void *page = mmap(0, 2 * sizeof *clock_page, PROT_READ, MAP_SHARED, file, 0);
	if (page != MAP_FAILED) clock_page = page;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *to) {
	int failed = syscall(SYS_clock_gettime, clock, to);
	if (failed || !clock_page || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
	int64_t us = clock_page[0];
	if (!clock_page[1]) us += to->tv_sec * 1000000LL + to->tv_nsec / 1000;
	to->tv_sec = us / 1000000;
	to->tv_nsec = us % 1000000 * 1000;
	return 0;
}

int gettimeofday(struct timeval *to, void *zone) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	if (to) *to = now.tv_sec;
	return now.tv_sec;
}
