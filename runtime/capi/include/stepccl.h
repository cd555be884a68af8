// StepCCL for C. Documentation/c-guide.md shows how to use it.
//
// Generated from runtime/capi/src by `scripts/build-c --header`: change it there.
//
// Every function that returns stepccl_result_t may be called with null handles and unknown numbers;
// it refuses them. Live means: made by this library and not yet destroyed or freed.

#pragma once

#include <stddef.h>
#include <stdint.h>

// A communicator; opaque to C.
struct stepccl_comm;

// An operation that was started; opaque to C.
struct stepccl_work;

// How a call ended: one of `STEPCCL_SUCCESS`, `STEPCCL_INVALID_ARGUMENT`, and so on. Later
// releases may add codes.
typedef int stepccl_result_t;

// Ranks that run collectives together. Collectives of one communicator run in the order of the
// calls, which must be the same on every rank.
typedef struct stepccl_comm *stepccl_comm_t;

// Type of the elements: one of `STEPCCL_FLOAT32`, `STEPCCL_FLOAT64`, and so on.
typedef int stepccl_dtype_t;

// How contributions are combined: one of `STEPCCL_SUM`, `STEPCCL_PROD`, and so on. Not every type
// has every operation; what it has not is `STEPCCL_INVALID_ARGUMENT`.
typedef int stepccl_op_t;

// An operation that was started. It goes on when the handle is freed.
typedef struct stepccl_work *stepccl_work_t;

// It went well.
#define STEPCCL_SUCCESS 0

// A value breaks a rule. Nothing was started; the communicator works on.
#define STEPCCL_INVALID_ARGUMENT 1

// The call is not possible at this point. Nothing was started; the communicator works on.
#define STEPCCL_INVALID_USAGE 2

// What was asked for does not exist here. Nothing was started; the communicator works on.
#define STEPCCL_NOT_SUPPORTED 3

// Time was over: of a wait, and the operation goes on, or of the operation or of start-up.
#define STEPCCL_TIMEOUT 4

// Another rank is gone. The communicator is broken.
#define STEPCCL_PEER_LOST 5

// Ranks called different operations. The communicator is broken.
#define STEPCCL_MISMATCH 6

// The communicator was aborted.
#define STEPCCL_ABORTED 7

// An earlier error broke the communicator; the text says which.
#define STEPCCL_BROKEN 8

// Ranks refused one another at start-up: other settings, or a rank that is taken.
#define STEPCCL_REFUSED 9

// Ranks could not meet.
#define STEPCCL_START_FAILED 10

// The operating system refused something.
#define STEPCCL_SYSTEM_ERROR 11

// The engine that moves the bytes failed.
#define STEPCCL_ENGINE_ERROR 12

// A fault of the library. The communicator should not be used any more.
#define STEPCCL_INTERNAL_ERROR 13

// `float`.
#define STEPCCL_FLOAT32 0

// `double`.
#define STEPCCL_FLOAT64 1

// IEEE 754 binary16.
#define STEPCCL_FLOAT16 2

// The upper half of a `float`.
#define STEPCCL_BFLOAT16 3

// 8 bits: 4 of exponent, 3 of fraction, no infinity.
#define STEPCCL_FLOAT8_E4M3 4

// 8 bits: 5 of exponent, 2 of fraction.
#define STEPCCL_FLOAT8_E5M2 5

// `int8_t`.
#define STEPCCL_INT8 6

// `uint8_t`.
#define STEPCCL_UINT8 7

// `int32_t`.
#define STEPCCL_INT32 8

// `uint32_t`.
#define STEPCCL_UINT32 9

// `int64_t`.
#define STEPCCL_INT64 10

// `uint64_t`.
#define STEPCCL_UINT64 11

// One byte: false where it is 0.
#define STEPCCL_BOOL 12

// Two `float`, the real part first.
#define STEPCCL_COMPLEX64 13

// Two `double`, the real part first.
#define STEPCCL_COMPLEX128 14

// Sum; integers wrap.
#define STEPCCL_SUM 0

// Product; integers wrap.
#define STEPCCL_PROD 1

// Largest; a NaN of any rank is the result.
#define STEPCCL_MAX 2

// Smallest; a NaN of any rank is the result.
#define STEPCCL_MIN 3

// Sum divided by the number of ranks; integers truncate towards zero.
#define STEPCCL_AVG 4

// Bits that every rank has.
#define STEPCCL_BIT_AND 6

// Bits that any rank has.
#define STEPCCL_BIT_OR 7

// Bits that an odd number of ranks have.
#define STEPCCL_BIT_XOR 8

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What a code means in general; `stepccl_last_error` says what happened. Never null; the text
// lives as long as the program.
//
// Thread safety: any thread, any time.
const char *stepccl_result_string(stepccl_result_t code);

// What the last failed call of this thread said: who, what, the rule and the next step. Never
// null; empty where no call has failed. The text is valid until this thread's next call that
// fails, and not longer than the thread.
//
// Thread safety: any thread, any time; each thread has its own text.
const char *stepccl_last_error(void);

// Version of the library, such as "0.1.0". Never null; the text lives as long as the program.
//
// Thread safety: any thread, any time.
const char *stepccl_version(void);

// Meet the other ranks and connect to them; every rank calls it, and it returns when all are
// there.
//
// `store` says where they meet: `file:DIRECTORY`, a directory that all ranks share and that is
// new for each job, or `tcp:HOST:PORT`, where rank 0 serves. `name` tells communicators of one
// store apart and must be new. `config` is null or settings over those of the environment, such
// as `timeout=30 engine=tcp`. `*comm` is null where it fails.
//
// Thread safety: any thread, any time.
//
// The caller promises:
// The texts end with a 0 byte; `comm` may be written.
stepccl_result_t stepccl_comm_create(const char *store,
                                     const char *name,
                                     uint32_t rank,
                                     uint32_t ranks,
                                     const char *config,
                                     stepccl_comm_t *comm);

// Make communicators of parts of the ranks of `comm`: one of all ranks with the same `color`, in
// the order of `key`, then of rank. Every rank of `comm` calls it, in the order of collectives;
// one with a negative `color` takes part in none and gets null. `*part` is null where it fails.
//
// Thread safety: as a collective.
//
// The caller promises:
// `comm` is null or live; `part` may be written.
stepccl_result_t stepccl_comm_split(stepccl_comm_t comm,
                                    int32_t color,
                                    int32_t key,
                                    stepccl_comm_t *part);

// Leave in good order: wait until all that was started here has ended, tell the other ranks and
// free the handle. Work of it stays valid.
//
// Thread safety: no other thread may use `comm` during the call; nobody may after it.
//
// The caller promises:
// `comm` is null or live.
stepccl_result_t stepccl_comm_destroy(stepccl_comm_t comm);

// End all operations of `comm`: on this rank at once with `STEPCCL_ABORTED` and `reason`, which
// may be null, and soon on the others with `STEPCCL_PEER_LOST`. No later one is possible; the
// handle is still to be destroyed.
//
// Thread safety: any thread, also while others wait in calls of `comm`.
//
// The caller promises:
// `comm` is null or live; `reason` is null or ends with a 0 byte.
stepccl_result_t stepccl_comm_abort(stepccl_comm_t comm, const char *reason);

// This rank, from 0.
//
// Thread safety: any thread, any time.
//
// The caller promises:
// `comm` is null or live; `rank` may be written.
stepccl_result_t stepccl_comm_rank(stepccl_comm_t comm, uint32_t *rank);

// Number of ranks.
//
// Thread safety: any thread, any time.
//
// The caller promises:
// `comm` is null or live; `ranks` may be written.
stepccl_result_t stepccl_comm_size(stepccl_comm_t comm, uint32_t *ranks);

// Every rank gets the reduction of all inputs: `count` elements each. In place: `output` is
// `input`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_all_reduce(stepccl_comm_t comm,
                                    const void *input,
                                    void *output,
                                    size_t count,
                                    stepccl_dtype_t dtype,
                                    stepccl_op_t op);

// Every rank gets the root's input: `count` elements. Only the root reads `input`. In place:
// `output` is `input`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_broadcast(stepccl_comm_t comm,
                                   const void *input,
                                   void *output,
                                   size_t count,
                                   stepccl_dtype_t dtype,
                                   uint32_t root);

// The root gets the reduction of all inputs: `count` elements each. Only the root writes `output`.
// In place: `output` is `input`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_reduce(stepccl_comm_t comm,
                                const void *input,
                                void *output,
                                size_t count,
                                stepccl_dtype_t dtype,
                                stepccl_op_t op,
                                uint32_t root);

// Every rank gets every input, in order of rank: `input` has `count` elements, `output` has
// `count` for each rank. In place: `input` is this rank's part of `output`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_all_gather(stepccl_comm_t comm,
                                    const void *input,
                                    void *output,
                                    size_t count,
                                    stepccl_dtype_t dtype);

// Rank i gets the reduction of part i of all inputs: `input` has `count` elements for each rank,
// `output` has `count`. In place: `output` is this rank's part of `input`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_reduce_scatter(stepccl_comm_t comm,
                                        const void *input,
                                        void *output,
                                        size_t count,
                                        stepccl_dtype_t dtype,
                                        stepccl_op_t op);

// Rank i gets part i of every input, in order of rank: `input` and `output` have `count` elements
// for each rank. Never in place.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_all_to_all(stepccl_comm_t comm,
                                    const void *input,
                                    void *output,
                                    size_t count,
                                    stepccl_dtype_t dtype);

// The root gets every input, in order of rank: `input` has `count` elements, the root's `output`
// has `count` for each rank. In place: `input` is the root's part of `output`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_gather(stepccl_comm_t comm,
                                const void *input,
                                void *output,
                                size_t count,
                                stepccl_dtype_t dtype,
                                uint32_t root);

// Rank i gets part i of the root's input: the root's `input` has `count` elements for each rank,
// `output` has `count`. In place: `output` is the root's part of `input`.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
// else writes the one or touches the other, until the call returns or the open group ends.
stepccl_result_t stepccl_scatter(stepccl_comm_t comm,
                                 const void *input,
                                 void *output,
                                 size_t count,
                                 stepccl_dtype_t dtype,
                                 uint32_t root);

// No rank returns before every rank has called.
//
// Thread safety: any thread; calls of one communicator from several threads run in no certain
// order.
//
// The caller promises:
// `comm` is null or live.
stepccl_result_t stepccl_barrier(stepccl_comm_t comm);

// Send `count` elements to `peer`, which receives as many bytes.
//
// Thread safety: any thread; messages that several threads send to or receive from the same rank
// come in no certain order.
//
// The caller promises:
// `comm` is null or live. `input` may be read, and nobody writes it, until the call returns or the
// open group ends.
stepccl_result_t stepccl_send(stepccl_comm_t comm,
                              const void *input,
                              size_t count,
                              stepccl_dtype_t dtype,
                              uint32_t peer);

// Receive `count` elements from `peer`, which sends as many bytes.
//
// Thread safety: any thread; messages that several threads send to or receive from the same rank
// come in no certain order.
//
// The caller promises:
// `comm` is null or live. `output` may be written, and nobody else touches it, until the call
// returns or the open group ends.
stepccl_result_t stepccl_recv(stepccl_comm_t comm,
                              void *output,
                              size_t count,
                              stepccl_dtype_t dtype,
                              uint32_t peer);

// Start what `stepccl_all_reduce` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_all_reduce`. The buffers belong to the library until the work has
// ended.
//
// The caller promises:
// As `stepccl_all_reduce`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_all_reduce_start(stepccl_comm_t comm,
                                          const void *input,
                                          void *output,
                                          size_t count,
                                          stepccl_dtype_t dtype,
                                          stepccl_op_t op,
                                          stepccl_work_t *work);

// Start what `stepccl_broadcast` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_broadcast`. The buffers belong to the library until the work has
// ended.
//
// The caller promises:
// As `stepccl_broadcast`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_broadcast_start(stepccl_comm_t comm,
                                         const void *input,
                                         void *output,
                                         size_t count,
                                         stepccl_dtype_t dtype,
                                         uint32_t root,
                                         stepccl_work_t *work);

// Start what `stepccl_reduce` does; `*work` tells when it has ended, and is null where this fails.
//
// Thread safety: as `stepccl_reduce`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_reduce`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_reduce_start(stepccl_comm_t comm,
                                      const void *input,
                                      void *output,
                                      size_t count,
                                      stepccl_dtype_t dtype,
                                      stepccl_op_t op,
                                      uint32_t root,
                                      stepccl_work_t *work);

// Start what `stepccl_all_gather` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_all_gather`. The buffers belong to the library until the work has
// ended.
//
// The caller promises:
// As `stepccl_all_gather`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_all_gather_start(stepccl_comm_t comm,
                                          const void *input,
                                          void *output,
                                          size_t count,
                                          stepccl_dtype_t dtype,
                                          stepccl_work_t *work);

// Start what `stepccl_reduce_scatter` does; `*work` tells when it has ended, and is null where
// this fails.
//
// Thread safety: as `stepccl_reduce_scatter`. The buffers belong to the library until the work has
// ended.
//
// The caller promises:
// As `stepccl_reduce_scatter`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_reduce_scatter_start(stepccl_comm_t comm,
                                              const void *input,
                                              void *output,
                                              size_t count,
                                              stepccl_dtype_t dtype,
                                              stepccl_op_t op,
                                              stepccl_work_t *work);

// Start what `stepccl_all_to_all` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_all_to_all`. The buffers belong to the library until the work has
// ended.
//
// The caller promises:
// As `stepccl_all_to_all`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_all_to_all_start(stepccl_comm_t comm,
                                          const void *input,
                                          void *output,
                                          size_t count,
                                          stepccl_dtype_t dtype,
                                          stepccl_work_t *work);

// Start what `stepccl_gather` does; `*work` tells when it has ended, and is null where this fails.
//
// Thread safety: as `stepccl_gather`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_gather`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_gather_start(stepccl_comm_t comm,
                                      const void *input,
                                      void *output,
                                      size_t count,
                                      stepccl_dtype_t dtype,
                                      uint32_t root,
                                      stepccl_work_t *work);

// Start what `stepccl_scatter` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_scatter`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_scatter`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_scatter_start(stepccl_comm_t comm,
                                       const void *input,
                                       void *output,
                                       size_t count,
                                       stepccl_dtype_t dtype,
                                       uint32_t root,
                                       stepccl_work_t *work);

// Start what `stepccl_barrier` does; `*work` tells when it has ended, and is null where this
// fails.
//
// Thread safety: as `stepccl_barrier`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_barrier`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_barrier_start(stepccl_comm_t comm, stepccl_work_t *work);

// Start what `stepccl_send` does; `*work` tells when it has ended, and is null where this fails.
//
// Thread safety: as `stepccl_send`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_send`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_send_start(stepccl_comm_t comm,
                                    const void *input,
                                    size_t count,
                                    stepccl_dtype_t dtype,
                                    uint32_t peer,
                                    stepccl_work_t *work);

// Start what `stepccl_recv` does; `*work` tells when it has ended, and is null where this fails.
//
// Thread safety: as `stepccl_recv`. The buffers belong to the library until the work has ended.
//
// The caller promises:
// As `stepccl_recv`, until the work has ended; `work` may be written.
stepccl_result_t stepccl_recv_start(stepccl_comm_t comm,
                                    void *output,
                                    size_t count,
                                    stepccl_dtype_t dtype,
                                    uint32_t peer,
                                    stepccl_work_t *work);

// Wait until the operation has ended, for at most `timeout_seconds`, above 0; `INFINITY` leaves it
// to the operation's own timeout. Returns how the operation ended, or `STEPCCL_TIMEOUT`: then
// `stepccl_work_test` tells whether it goes on. The waiting thread does the work meanwhile.
//
// Thread safety: any thread; several may wait for the same.
//
// The caller promises:
// `work` is null or live.
stepccl_result_t stepccl_work_wait(stepccl_work_t work, double timeout_seconds);

// Whether the operation has ended, well or not: `*done` is 1 or 0. Returns how it ended where it
// has. Never waits.
//
// Thread safety: any thread.
//
// The caller promises:
// `work` is null or live; `done` may be written.
stepccl_result_t stepccl_work_test(stepccl_work_t work, int *done);

// Free the handle. The operation goes on, and its buffers are in use until it has ended.
//
// Thread safety: no other thread may use `work` during the call; nobody may after it.
//
// The caller promises:
// `work` is null or live.
stepccl_result_t stepccl_work_free(stepccl_work_t work);

// Open a group on this thread: the waiting forms of operations, called from here to
// `stepccl_group_end`, return at once and run as one at the end; what is not possible is refused
// then at the latest. Sends and receives of a group progress at the same time, so that ranks may
// all send first. Groups do not nest.
//
// Thread safety: any thread; each thread has its own group.
stepccl_result_t stepccl_group_start(void);

// Run what was called since `stepccl_group_start`, and wait until all of it has ended. Returns the
// first error. Communicators of the group must be live. Where operations of a communicator are
// refused, none of that communicator's starts.
//
// Thread safety: as `stepccl_group_start`, on the same thread.
//
// The caller promises:
// The buffers of the group's operations are as those operations ask for.
stepccl_result_t stepccl_group_end(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
