/* Profiles of a C or C++ program over HTTP, one request at a time:
 *
 *     GET /debug/pprof/profile?seconds=N     CPU, by gperftools
 *     GET /debug/pprof/heap                  what is allocated, by jemalloc
 *
 * Debian: apt-get install libgoogle-perftools-dev libjemalloc-dev
 *
 *     cc -g app.c pprof_routes.c -pthread -lprofiler -ljemalloc -o app
 *     MALLOC_CONF=prof:true ./app
 *
 * A C++ program declares the function below as extern "C". Nothing here asks who is there: listen
 * on an address that only profpull reaches. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <gperftools/profiler.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool write_cpu(const char *file, const char *request)
{
    const char *seconds = strstr(request, "seconds=");
    struct timespec end;
    if (ProfilerStart(file) == 0) {
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds != NULL ? strtol(seconds + 8, NULL, 10) : 10;
    /* The profiler's signals interrupt a sleep, so this one has an end rather than a length. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
    ProfilerStop();
    return true;
}

static void answer(int client)
{
    char request[4096] = "", file[64], head[160];
    if (read(client, request, sizeof(request) - 1) <= 0) {
        return;
    }
    /* Both libraries write to a file that they open by its name: this one is in memory only. */
    int body = memfd_create("profile", MFD_CLOEXEC);
    snprintf(file, sizeof(file), "/proc/self/fd/%d", body);
    const char *name = file, *status = "404 Not Found";
    if (strncmp(request, "GET /debug/pprof/profile", 24) == 0) {
        status = write_cpu(file, request) ? "200 OK" : "503 Service Unavailable";
    } else if (strncmp(request, "GET /debug/pprof/heap", 21) == 0) {
        status = mallctl("prof.dump", NULL, NULL, &name, sizeof(name)) == 0
                     ? "200 OK"
                     : "503 Service Unavailable";
    }
    struct stat size = {0};
    fstat(body, &size);
    int n =
        snprintf(head, sizeof(head),
                 "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n"
                 "Content-Length: %lld\r\n\r\n",
                 status, (long long)size.st_size);
    off_t sent = 0;
    if (write(client, head, (size_t)n) == n) {
        while (sent < size.st_size &&
               sendfile(client, body, &sent, (size_t)(size.st_size - sent)) > 0) {
        }
    }
    close(body);
}

static void *serve(void *arg)
{
    int server = (int)(intptr_t)arg;
    for (;;) {
        int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) {
            struct timeval limit = {.tv_sec = 10};
            setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
            setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
            answer(client);
            close(client);
        }
    }
    return NULL;
}

/* Call this once: a thread answers at the IPv4 address and port from then on. 0 if that is so, else
 * -1. */
int serve_profiles(const char *address, unsigned short port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    if (server < 0) {
        return -1;
    }
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1 ||
        bind(server, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(server, 8) != 0 ||
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)server) != 0) {
        close(server);
        return -1;
    }
    pthread_detach(thread);
    return 0;
}
