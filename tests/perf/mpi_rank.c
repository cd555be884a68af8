/*
 * One rank of an MPI, measured from C. Built against the mpi.h of each peer; started by its mpirun.
 *
 * It connects to the Unix socket BENCH_SOCKET, says "hello RANK LIBRARY" and then obeys lines:
 *   check OPERATION BYTES                        one call on known numbers -> "ok" or "error TEXT"
 *   measure OPERATION BYTES WARMUP CALLS SAMPLES -> "ok NS NS ...", one mean time of a call a sample
 *   quit
 * A sample is the time of CALLS calls after a barrier, divided by CALLS. Between lines the rank
 * sleeps in read(), so it takes no core from the library that is measured meanwhile.
 *
 * BYTES is the larger of a rank's input and output. Elements are float, results stand apart from
 * inputs, the root is rank 0. The ranks of Rust and of torch beside this file do the same.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ROOT = 0, TAG = 7, MOST_SAMPLES = 10000 };
static const MPI_Comm WORLD = MPI_COMM_WORLD;

/* The buffers of one size: `count` elements, `part` of them for each rank. */
struct job {
	float *in, *out;
	int count, part, rank, ranks;
};

static void all_reduce(struct job *j) { MPI_Allreduce(j->in, j->out, j->count, MPI_FLOAT, MPI_SUM, WORLD); }
static void reduce(struct job *j) { MPI_Reduce(j->in, j->out, j->count, MPI_FLOAT, MPI_SUM, ROOT, WORLD); }
static void broadcast(struct job *j) { MPI_Bcast(j->in, j->count, MPI_FLOAT, ROOT, WORLD); }
static void barrier(struct job *j) { (void)j; MPI_Barrier(WORLD); }

static void all_gather(struct job *j)
{
	MPI_Allgather(j->in, j->part, MPI_FLOAT, j->out, j->part, MPI_FLOAT, WORLD);
}

static void reduce_scatter(struct job *j)
{
	MPI_Reduce_scatter_block(j->in, j->out, j->part, MPI_FLOAT, MPI_SUM, WORLD);
}

static void all_to_all(struct job *j)
{
	MPI_Alltoall(j->in, j->part, MPI_FLOAT, j->out, j->part, MPI_FLOAT, WORLD);
}

static void gather(struct job *j)
{
	MPI_Gather(j->in, j->part, MPI_FLOAT, j->out, j->part, MPI_FLOAT, ROOT, WORLD);
}

static void scatter(struct job *j)
{
	MPI_Scatter(j->in, j->part, MPI_FLOAT, j->out, j->part, MPI_FLOAT, ROOT, WORLD);
}

/* Every rank to the next and from the one before, both at once. */
static void sendrecv(struct job *j)
{
	int next = (j->rank + 1) % j->ranks, before = (j->rank + j->ranks - 1) % j->ranks;
	MPI_Sendrecv(j->in, j->count, MPI_FLOAT, next, TAG, j->out, j->count, MPI_FLOAT, before, TAG,
		     WORLD, MPI_STATUS_IGNORE);
}

/* From rank 0 to rank 1 and back. */
static void ping_pong(struct job *j)
{
	if (j->rank == 0) {
		MPI_Send(j->in, j->count, MPI_FLOAT, 1, TAG, WORLD);
		MPI_Recv(j->out, j->count, MPI_FLOAT, 1, TAG, WORLD, MPI_STATUS_IGNORE);
	} else if (j->rank == 1) {
		MPI_Recv(j->out, j->count, MPI_FLOAT, 0, TAG, WORLD, MPI_STATUS_IGNORE);
		MPI_Send(j->out, j->count, MPI_FLOAT, 0, TAG, WORLD);
	}
}

/* What a core can do: every rank copies its buffer at once, or rank 0 alone. */
static void copy(struct job *j) { memcpy(j->out, j->in, (size_t)j->count * sizeof(float)); }
static void copy_one(struct job *j) { if (j->rank == 0) copy(j); }

static float value(int rank, int i) { return (float)(rank + 1 + i % 5); }

static float sum(int ranks, int i)
{
	float all = 0;
	for (int rank = 0; rank < ranks; rank++)
		all += value(rank, i);
	return all;
}

/* What element `i` of the output must be. */
static float want_sum(const struct job *j, int i) { return sum(j->ranks, i); }
static float want_own_sum(const struct job *j, int i) { return sum(j->ranks, j->rank * j->part + i); }
static float want_blocks(const struct job *j, int i) { return value(i / j->part, i % j->part); }
static float want_own_blocks(const struct job *j, int i)
{
	return value(i / j->part, j->rank * j->part + i % j->part);
}
static float want_root(const struct job *j, int i) { (void)j; return value(ROOT, i); }
static float want_own_root(const struct job *j, int i) { return value(ROOT, j->rank * j->part + i); }
static float want_before(const struct job *j, int i) { return value((j->rank + j->ranks - 1) % j->ranks, i); }
static float want_same(const struct job *j, int i) { return value(j->rank, i); }

enum who { NOBODY, EVERYBODY, THE_ROOT, FIRST_TWO };
enum length { WHOLE, PART };

static const struct operation {
	const char *name;
	void (*call)(struct job *);
	float (*want)(const struct job *, int);
	enum who who;
	enum length length;
} OPERATIONS[] = {
	{ "all_reduce", all_reduce, want_sum, EVERYBODY, WHOLE },
	{ "all_gather", all_gather, want_blocks, EVERYBODY, WHOLE },
	{ "reduce_scatter", reduce_scatter, want_own_sum, EVERYBODY, PART },
	{ "all_to_all", all_to_all, want_own_blocks, EVERYBODY, WHOLE },
	{ "broadcast", broadcast, want_root, EVERYBODY, WHOLE },
	{ "reduce", reduce, want_sum, THE_ROOT, WHOLE },
	{ "gather", gather, want_blocks, THE_ROOT, WHOLE },
	{ "scatter", scatter, want_own_root, EVERYBODY, PART },
	{ "sendrecv", sendrecv, want_before, EVERYBODY, WHOLE },
	{ "ping_pong", ping_pong, want_root, FIRST_TWO, WHOLE },
	{ "barrier", barrier, want_same, NOBODY, WHOLE },
	{ "copy", copy, want_same, EVERYBODY, WHOLE },
	{ "copy_one", copy_one, want_same, THE_ROOT, WHOLE },
};

static const struct operation *find(const char *name)
{
	for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
		if (strcmp(OPERATIONS[i].name, name) == 0)
			return &OPERATIONS[i];
	return NULL;
}

/* The first wrong element of a checked call, or -1. A broadcast has one buffer, the input. */
static int first_wrong(const struct operation *op, struct job *j)
{
	int in_place = op->call == broadcast;
	for (int i = 0; i < j->count; i++) {
		j->in[i] = in_place && j->rank != ROOT ? -1 : value(j->rank, i);
		j->out[i] = -1;
	}
	op->call(j);
	if (op->who == NOBODY || (op->who == THE_ROOT && j->rank != ROOT) || (op->who == FIRST_TWO && j->rank > 1))
		return -1;
	const float *result = in_place ? j->in : j->out;
	int length = op->length == PART ? j->part : j->count;
	for (int i = 0; i < length; i++)
		if (result[i] != op->want(j, i))
			return i;
	return -1;
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void measure(FILE *driver, const struct operation *op, struct job *j, int warmup, int calls, int samples)
{
	static double ns[MOST_SAMPLES];
	for (int i = 0; i < warmup; i++)
		op->call(j);
	for (int s = 0; s < samples; s++) {
		MPI_Barrier(WORLD);
		double start = now_ns();
		for (int i = 0; i < calls; i++)
			op->call(j);
		ns[s] = (now_ns() - start) / calls;
	}
	fprintf(driver, "ok");
	for (int s = 0; s < samples; s++)
		fprintf(driver, " %.1f", ns[s]);
	fprintf(driver, "\n");
}

/* Do what one line says; 0 ends the rank. */
static int obey(FILE *driver, const char *line, struct job *j)
{
	char verb[16], name[32];
	long bytes = 0;
	int warmup = 0, calls = 0, samples = 0;
	int words = sscanf(line, "%15s %31s %ld %d %d %d", verb, name, &bytes, &warmup, &calls, &samples);
	if (words < 3)
		return 0;
	const struct operation *op = find(name);
	long part = bytes / (long)sizeof(float) / j->ranks;
	j->part = part > 1 ? (int)part : 1;
	j->count = j->part * j->ranks;
	size_t length = (size_t)j->count * sizeof(float);
	void *in = NULL, *out = NULL;
	if (!op || (words == 6 && (calls < 1 || samples < 1 || samples > MOST_SAMPLES))) {
		fprintf(driver, "error cannot do: %s", line);
	} else if (posix_memalign(&in, 4096, length) || posix_memalign(&out, 4096, length)) {
		fprintf(driver, "error no memory for 2 buffers of %zu bytes\n", length);
	} else {
		/* No call pays for the first touch. */
		j->in = memset(in, 0, length);
		j->out = memset(out, 0, length);
		if (words == 6) {
			measure(driver, op, j, warmup, calls, samples);
		} else {
			int wrong = first_wrong(op, j);
			if (wrong < 0)
				fprintf(driver, "ok\n");
			else
				fprintf(driver, "error %s of %ld bytes is wrong on rank %d at element %d\n", name, bytes, j->rank, wrong);
		}
	}
	free(in);
	free(out);
	return fflush(driver) == 0;
}

/* A core of its own for each rank, where there are enough; all libraries are placed alike. */
static void bind_to_core(const cpu_set_t *allowed, int rank, int ranks)
{
	if (CPU_COUNT(allowed) < ranks)
		return;
	for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, allowed) || seen++ != rank)
			continue;
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		sched_setaffinity(0, sizeof one, &one);
		return;
	}
}

/* Both directions of the connection to the driver, apart: stdio cannot turn round on a socket. */
static int connect_driver(FILE **from, FILE **to)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("BENCH_SOCKET");
	if (!path || strlen(path) >= sizeof address.sun_path)
		return 0;
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		return 0;
	*from = fdopen(fd, "r");
	*to = fdopen(dup(fd), "w");
	return *from && *to;
}

int main(int argc, char **argv)
{
	cpu_set_t allowed;
	char library[MPI_MAX_LIBRARY_VERSION_STRING], line[256];
	int length = 0;
	struct job job = { 0 };

	sched_getaffinity(0, sizeof allowed, &allowed);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &job.rank);
	MPI_Comm_size(WORLD, &job.ranks);
	bind_to_core(&allowed, job.rank, job.ranks);
	MPI_Get_library_version(library, &length);
	library[strcspn(library, ",\r\n")] = 0;
	FILE *from = NULL, *to = NULL;
	if (!connect_driver(&from, &to)) {
		fprintf(stderr, "rank %d: BENCH_SOCKET cannot be connected\n", job.rank);
		MPI_Abort(WORLD, 1);
	}
	fprintf(to, "hello %d %s\n", job.rank, library);
	fflush(to);
	while (fgets(line, sizeof line, from) && obey(to, line, &job))
		;
	MPI_Finalize();
	return 0;
}
