/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DMA_ENGINE_HELPERS_H
#define DMA_ENGINE_HELPERS_H

#include <linux/types.h>

struct device;
struct dma_chan;
struct dmaengine_result;
struct eventfd_ctx;
struct file_operations;
struct mm_struct;
struct page;
struct scatterlist;
struct sg_table;
struct task_struct;
struct vm_area_struct;
struct workqueue_struct;

void *dma_engine_vmalloc_user(unsigned long bytes);
void dma_engine_vfree(void *memory);
unsigned long dma_engine_vma_offset(struct vm_area_struct *vma);
int dma_engine_remap(struct vm_area_struct *vma, void *memory);

unsigned long dma_engine_task_size(void);
bool dma_engine_node_online(int node);

unsigned long dma_engine_memlock_limit(void);
unsigned long dma_engine_pinned(struct mm_struct *mm);
bool dma_engine_charge(struct mm_struct *mm, unsigned long pages, unsigned long limit);
void dma_engine_uncharge(struct mm_struct *mm, unsigned long pages);
int dma_engine_pin(unsigned long address, int count, bool write, struct page **pages);
void dma_engine_unpin(struct page **pages, unsigned long count, bool dirty);
void *dma_engine_page_address(struct page *page);

void dma_engine_move(void *to, const void *from, unsigned long bytes);
void dma_engine_fill(void *to, u64 pattern, unsigned long bytes);

void dma_engine_cond_resched(void);
bool dma_engine_ratelimit(void);

struct eventfd_ctx *dma_engine_eventfd_get(int fd);
void dma_engine_eventfd_put(struct eventfd_ctx *eventfd);
void dma_engine_eventfd_signal(struct eventfd_ctx *eventfd);

struct dma_chan *dma_engine_request_channel(void);
void dma_engine_release_channel(struct dma_chan *channel);
struct device *dma_engine_channel_device(struct dma_chan *channel);
const char *dma_engine_channel_name(struct dma_chan *channel);
const char *dma_engine_channel_provider(struct dma_chan *channel);
unsigned int dma_engine_channel_align(struct dma_chan *channel);
int dma_engine_device_node(struct device *device);
unsigned int dma_engine_device_max_segment(struct device *device);
bool dma_engine_device_direct(struct device *device);

bool dma_engine_start(struct dma_chan *channel, dma_addr_t to, dma_addr_t from, size_t bytes,
		      void (*callback)(void *parameter, const struct dmaengine_result *result),
		      void *parameter);
void dma_engine_issue(struct dma_chan *channel);
int dma_engine_result(const struct dmaengine_result *result);

int dma_engine_map(struct device *device, struct sg_table *table, struct page **pages,
		   unsigned int count, int direction);
void dma_engine_unmap(struct device *device, struct sg_table *table, int direction);
struct scatterlist *dma_engine_next_segment(struct scatterlist *segment);
dma_addr_t dma_engine_segment_address(struct scatterlist *segment);
unsigned int dma_engine_segment_length(struct scatterlist *segment);

struct workqueue_struct *dma_engine_alloc_queue(void);
void dma_engine_destroy_queue(struct workqueue_struct *queue);

void dma_engine_get_device(struct device *device);
void dma_engine_put_device(struct device *device);
struct task_struct *dma_engine_start_thread(int (*run)(void *parameter), void *parameter);
void dma_engine_stop_thread(struct task_struct *task);
bool dma_engine_sleep_or_stop(unsigned int milliseconds);

int dma_engine_get_fd(const struct file_operations *operations, void *private);
void dma_engine_close_fd(int fd);

#endif
