// Every function of stepccl.h, on one of two ranks: program STORE RANK RANKS. Prints "ok".

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stepccl.h"

#define FAIL_UNLESS(condition)                                                   \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "line %d: %s\n%s\n", __LINE__, #condition,           \
                    stepccl_last_error());                                       \
            exit(1);                                                             \
        }                                                                        \
    } while (0)
#define IS(code, call) FAIL_UNLESS((call) == (code))
#define OK(call) IS(STEPCCL_SUCCESS, call)
#define SAYS(text) FAIL_UNLESS(strstr(stepccl_last_error(), text) != NULL)

enum { N = 1000, BIG = 1 << 20 };

static void collectives(stepccl_comm_t comm, int32_t me)
{
    int32_t mine[2 * N], all[2 * N], one[N];
    int32_t other = 1 - me;

    for (int i = 0; i < 2 * N; i++)
        mine[i] = 10 * me + i / N;

    OK(stepccl_all_reduce(comm, mine, one, N, STEPCCL_INT32, STEPCCL_SUM));
    FAIL_UNLESS(one[0] == 10 && one[N - 1] == 10);
    OK(stepccl_reduce(comm, mine, one, N, STEPCCL_INT32, STEPCCL_MAX, 1));
    FAIL_UNLESS(one[N - 1] == 10);
    OK(stepccl_all_gather(comm, mine, all, N, STEPCCL_INT32));
    FAIL_UNLESS(all[0] == 0 && all[N - 1] == 0 && all[N] == 10 && all[2 * N - 1] == 10);
    OK(stepccl_reduce_scatter(comm, mine, one, N, STEPCCL_INT32, STEPCCL_SUM));
    FAIL_UNLESS(one[0] == 10 + 2 * me && one[N - 1] == 10 + 2 * me);
    OK(stepccl_all_to_all(comm, mine, all, N, STEPCCL_INT32));
    FAIL_UNLESS(all[0] == me && all[N] == 10 + me && all[2 * N - 1] == 10 + me);
    OK(stepccl_gather(comm, mine, me == 0 ? all : NULL, N, STEPCCL_INT32, 0));
    FAIL_UNLESS(me != 0 || (all[0] == 0 && all[2 * N - 1] == 10));
    OK(stepccl_scatter(comm, me == 1 ? mine : NULL, one, N, STEPCCL_INT32, 1));
    FAIL_UNLESS(one[0] == 10 + me && one[N - 1] == 10 + me);
    OK(stepccl_broadcast(comm, me == 0 ? mine : NULL, one, N, STEPCCL_INT32, 0));
    FAIL_UNLESS(one[0] == 0 && one[N - 1] == 0);
    OK(stepccl_barrier(comm));

    // In place, and a type and an operation of another kind.
    double values[3] = {1.5 + me, -2.0, 4.0 * me};
    OK(stepccl_all_reduce(comm, values, values, 3, STEPCCL_FLOAT64, STEPCCL_AVG));
    FAIL_UNLESS(values[0] == 2.0 && values[1] == -2.0 && values[2] == 2.0);

    if (me == 0)
        OK(stepccl_send(comm, mine, N, STEPCCL_INT32, 1));
    else
        OK(stepccl_recv(comm, one, N, STEPCCL_INT32, 0));
    FAIL_UNLESS(one[N - 1] == 0);

    // Long messages, both ranks send first.
    int32_t *out = malloc(BIG * sizeof *out), *in = malloc(BIG * sizeof *in);
    FAIL_UNLESS(out != NULL && in != NULL);
    for (int i = 0; i < BIG; i++)
        out[i] = me ? -i : i;
    OK(stepccl_group_start());
    OK(stepccl_send(comm, out, BIG, STEPCCL_INT32, (uint32_t)other));
    OK(stepccl_recv(comm, in, BIG, STEPCCL_INT32, (uint32_t)other));
    OK(stepccl_all_reduce(comm, mine, one, N, STEPCCL_INT32, STEPCCL_SUM));
    IS(STEPCCL_INVALID_USAGE, stepccl_group_start());
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_send(comm, out, 1, 99, 0));
    stepccl_work_t work;
    IS(STEPCCL_INVALID_USAGE, stepccl_barrier_start(comm, &work));
    FAIL_UNLESS(work == NULL);
    OK(stepccl_group_end());
    FAIL_UNLESS(in[BIG - 1] == (me ? BIG - 1 : 1 - BIG) && one[0] == 10);
    IS(STEPCCL_INVALID_USAGE, stepccl_group_end());
    // The values of a group are looked at when it ends; none of it has started then.
    OK(stepccl_group_start());
    OK(stepccl_all_reduce(comm, mine, one, N, STEPCCL_INT32, STEPCCL_SUM));
    OK(stepccl_send(comm, out, BIG, STEPCCL_INT32, 7));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_group_end());
    SAYS("peer = 7");
    free(out);
    free(in);
}

static void end(stepccl_work_t work)
{
    int done = 0;

    OK(stepccl_work_wait(work, INFINITY));
    OK(stepccl_work_test(work, &done));
    FAIL_UNLESS(done == 1);
    OK(stepccl_work_free(work));
}

static void started(stepccl_comm_t comm, int32_t me)
{
    int32_t mine[2 * N], one[6][N], all[3][2 * N], message = -1;
    stepccl_work_t work[9];
    int done = 1;

    for (int i = 0; i < 2 * N; i++)
        mine[i] = 10 * me + i / N;
    OK(stepccl_all_reduce_start(comm, mine, one[0], N, STEPCCL_INT32, STEPCCL_SUM, &work[0]));
    OK(stepccl_reduce_start(comm, mine, one[1], N, STEPCCL_INT32, STEPCCL_SUM, 0, &work[1]));
    OK(stepccl_broadcast_start(comm, mine, one[2], N, STEPCCL_INT32, 1, &work[2]));
    OK(stepccl_reduce_scatter_start(comm, mine, one[3], N, STEPCCL_INT32, STEPCCL_MIN, &work[3]));
    OK(stepccl_scatter_start(comm, mine, one[4], N, STEPCCL_INT32, 0, &work[4]));
    OK(stepccl_all_gather_start(comm, mine, all[0], N, STEPCCL_INT32, &work[5]));
    OK(stepccl_all_to_all_start(comm, mine, all[1], N, STEPCCL_INT32, &work[6]));
    OK(stepccl_gather_start(comm, mine, all[2], N, STEPCCL_INT32, 0, &work[7]));
    OK(stepccl_barrier_start(comm, &work[8]));
    for (int i = 0; i < 9; i++)
        end(work[i]);
    FAIL_UNLESS(one[0][N - 1] == 10 && one[2][0] == 10 && one[3][0] == me && one[4][0] == me);
    FAIL_UNLESS(me != 0 || (one[1][N - 1] == 10 && all[2][2 * N - 1] == 10));
    FAIL_UNLESS(all[0][N] == 10 && all[1][N] == 10 + me);

    // A wait that is over leaves the operation as it is.
    if (me == 0) {
        OK(stepccl_recv_start(comm, &message, 1, STEPCCL_INT32, 1, &work[0]));
        IS(STEPCCL_TIMEOUT, stepccl_work_wait(work[0], 0.01));
        SAYS("timed out");
        OK(stepccl_work_test(work[0], &done));
        FAIL_UNLESS(done == 0);
    }
    OK(stepccl_barrier(comm));
    if (me == 1) {
        message = 77;
        OK(stepccl_send_start(comm, &message, 1, STEPCCL_INT32, 0, &work[0]));
    }
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_work_wait(work[0], 0.0));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_work_wait(work[0], NAN));
    end(work[0]);
    FAIL_UNLESS(message == 77);
}

static void refused(stepccl_comm_t comm, const char *store)
{
    float x[2] = {1, 2}, y[2];
    stepccl_comm_t none = comm;
    stepccl_work_t work;
    uint32_t number;
    int done;

    IS(STEPCCL_INVALID_ARGUMENT, stepccl_all_reduce(comm, x, y, 2, 15, STEPCCL_SUM));
    SAYS("dtype = 15");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_all_reduce(comm, x, y, 2, STEPCCL_FLOAT32, 5));
    SAYS("op = 5");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_all_reduce(comm, x, y, 2, STEPCCL_FLOAT32, STEPCCL_BIT_OR));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_all_reduce(comm, NULL, y, 2, STEPCCL_FLOAT32, STEPCCL_SUM));
    SAYS("input = null");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_all_reduce(comm, x, x + 1, 1u << 4, STEPCCL_FLOAT32, 0));
    SAYS("overlaps");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_broadcast(comm, x, y, SIZE_MAX, STEPCCL_FLOAT32, 0));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_send(comm, x, SIZE_MAX, STEPCCL_FLOAT32, 0));
    SAYS("2^40");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_broadcast(comm, x, y, 2, STEPCCL_FLOAT32, 2));
    SAYS("root = 2");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_barrier(NULL));
    SAYS("comm = NULL");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_barrier_start(comm, NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_barrier_start(NULL, &work));
    FAIL_UNLESS(work == NULL);
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_work_wait(NULL, 1.0));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_work_test(NULL, &done));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_work_free(NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_rank(NULL, &number));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_size(comm, NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_destroy(NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_abort(NULL, NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_split(NULL, 0, 0, &none));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_create(store, "x", 0, 1, NULL, NULL));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_create(NULL, "x", 0, 1, NULL, &none));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_create("nowhere", "x", 0, 1, NULL, &none));
    FAIL_UNLESS(none == NULL);
    SAYS("file:DIRECTORY");
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_create(store, "x\xff", 0, 1, NULL, &none));
    IS(STEPCCL_INVALID_ARGUMENT, stepccl_comm_create(store, "x", 0, 1, "speed=high", &none));
    SAYS("speed");
}

static void *abort_soon(void *comm)
{
    struct timespec pause = {0, 50 * 1000 * 1000};

    nanosleep(&pause, NULL);
    OK(stepccl_comm_abort(comm, "the test is over"));
    return NULL;
}

// Another thread of rank 0 aborts while both ranks wait for messages that nobody sends.
static void aborted(stepccl_comm_t comm, int32_t me)
{
    pthread_t thread;
    stepccl_result_t code;
    int x;

    if (me == 0)
        FAIL_UNLESS(pthread_create(&thread, NULL, abort_soon, comm) == 0);
    code = stepccl_recv(comm, &x, 1, STEPCCL_INT32, (uint32_t)(1 - me));
    FAIL_UNLESS(code == (me == 0 ? STEPCCL_ABORTED : STEPCCL_PEER_LOST));
    SAYS(me == 0 ? "the test is over" : "rank 0");
    if (me == 0)
        FAIL_UNLESS(pthread_join(thread, NULL) == 0);
    IS(STEPCCL_BROKEN, stepccl_barrier(comm));
}

int main(int argc, char **argv)
{
    stepccl_comm_t comm, part;
    uint32_t rank = 9, ranks = 9, alone = 9;

    FAIL_UNLESS(argc == 4);
    rank = (uint32_t)atoi(argv[2]);
    FAIL_UNLESS(strchr(stepccl_version(), '.') != NULL);
    FAIL_UNLESS(strcmp(stepccl_last_error(), "") == 0);
    FAIL_UNLESS(strcmp(stepccl_result_string(STEPCCL_TIMEOUT), "timed out") == 0);
    FAIL_UNLESS(strcmp(stepccl_result_string(-5), "unknown code") == 0);

    OK(stepccl_comm_create(argv[1], "world.0", rank, (uint32_t)atoi(argv[3]),
                           "timeout=60 start_timeout=60", &comm));
    OK(stepccl_comm_rank(comm, &rank));
    OK(stepccl_comm_size(comm, &ranks));
    FAIL_UNLESS(rank == (uint32_t)atoi(argv[2]) && ranks == 2);

    refused(comm, argv[1]);
    collectives(comm, (int32_t)rank);
    started(comm, (int32_t)rank);

    OK(stepccl_comm_split(comm, (int32_t)rank, 0, &part));
    OK(stepccl_comm_size(part, &alone));
    FAIL_UNLESS(alone == 1);
    // A group over two communicators.
    int32_t x = 3, y = 0, z = 0;
    OK(stepccl_group_start());
    OK(stepccl_all_reduce(comm, &x, &y, 1, STEPCCL_INT32, STEPCCL_PROD));
    OK(stepccl_all_reduce(part, &x, &z, 1, STEPCCL_INT32, STEPCCL_PROD));
    OK(stepccl_group_end());
    FAIL_UNLESS(y == 9 && z == 3);
    OK(stepccl_comm_destroy(part));
    OK(stepccl_comm_split(comm, rank == 0 ? -1 : 0, 0, &part));
    FAIL_UNLESS((part == NULL) == (rank == 0));
    if (part != NULL)
        OK(stepccl_comm_destroy(part));

    // A second communicator of the same store, to be aborted.
    OK(stepccl_comm_create(argv[1], "world.1", rank, ranks, "timeout=60", &part));
    aborted(part, (int32_t)rank);
    OK(stepccl_comm_destroy(part));

    OK(stepccl_comm_destroy(comm));
    puts("ok");
    return 0;
}
