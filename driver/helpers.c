// SPDX-License-Identifier: GPL-2.0
/*
 * Functions around inlines, macros and types that the kernel crate does not bind.
 * Nothing is decided here; helpers.rs has the contract of each.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/eventfd.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "helpers.h"

void *dma_engine_vmalloc_user(unsigned long bytes)
{
	return vmalloc_user(bytes);
}

void dma_engine_vfree(void *memory)
{
	vfree(memory);
}

unsigned long dma_engine_vma_offset(struct vm_area_struct *vma)
{
	return vma->vm_pgoff << PAGE_SHIFT;
}

int dma_engine_remap(struct vm_area_struct *vma, void *memory)
{
	return remap_vmalloc_range(vma, memory, 0);
}

unsigned long dma_engine_task_size(void)
{
	return TASK_SIZE_MAX;
}

bool dma_engine_node_online(int node)
{
	return node >= 0 && node < MAX_NUMNODES && node_online(node);
}

unsigned long dma_engine_memlock_limit(void)
{
	return capable(CAP_IPC_LOCK) ? ULONG_MAX : rlimit(RLIMIT_MEMLOCK);
}

unsigned long dma_engine_pinned(struct mm_struct *mm)
{
	return atomic64_read(&mm->pinned_vm);
}

bool dma_engine_charge(struct mm_struct *mm, unsigned long pages, unsigned long limit)
{
	if (atomic64_add_return(pages, &mm->pinned_vm) <= limit)
		return true;
	atomic64_sub(pages, &mm->pinned_vm);
	return false;
}

void dma_engine_uncharge(struct mm_struct *mm, unsigned long pages)
{
	atomic64_sub(pages, &mm->pinned_vm);
}

int dma_engine_pin(unsigned long address, int count, bool write, struct page **pages)
{
	return pin_user_pages_fast(address, count, FOLL_LONGTERM | (write ? FOLL_WRITE : 0), pages);
}

void dma_engine_unpin(struct page **pages, unsigned long count, bool dirty)
{
	unpin_user_pages_dirty_lock(pages, count, dirty);
}

void *dma_engine_page_address(struct page *page)
{
	return page_address(page);
}

void dma_engine_move(void *to, const void *from, unsigned long bytes)
{
	memmove(to, from, bytes);
}

void dma_engine_fill(void *to, u64 pattern, unsigned long bytes)
{
	memset64(to, pattern, bytes / 8);
	memcpy(to + bytes / 8 * 8, &pattern, bytes % 8);
}

void dma_engine_cond_resched(void)
{
	cond_resched();
}

bool dma_engine_ratelimit(void)
{
	static DEFINE_RATELIMIT_STATE(limit, 5 * HZ, 10);

	return __ratelimit(&limit);
}

struct eventfd_ctx *dma_engine_eventfd_get(int fd)
{
	return eventfd_ctx_fdget(fd);
}

void dma_engine_eventfd_put(struct eventfd_ctx *eventfd)
{
	eventfd_ctx_put(eventfd);
}

void dma_engine_eventfd_signal(struct eventfd_ctx *eventfd)
{
	eventfd_signal(eventfd);
}

struct dma_chan *dma_engine_request_channel(void)
{
	dma_cap_mask_t mask;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	return dma_request_channel(mask, NULL, NULL);
}

void dma_engine_release_channel(struct dma_chan *channel)
{
	dma_release_channel(channel);
}

struct device *dma_engine_channel_device(struct dma_chan *channel)
{
	return dmaengine_get_dma_device(channel);
}

const char *dma_engine_channel_name(struct dma_chan *channel)
{
	return dma_chan_name(channel);
}

const char *dma_engine_channel_provider(struct dma_chan *channel)
{
	return dev_driver_string(channel->device->dev);
}

int dma_engine_device_node(struct device *device)
{
	return dev_to_node(device);
}

unsigned int dma_engine_channel_align(struct dma_chan *channel)
{
	return 1U << channel->device->copy_align;
}

unsigned int dma_engine_device_max_segment(struct device *device)
{
	return dma_get_max_seg_size(device);
}

bool dma_engine_device_direct(struct device *device)
{
	return !dma_dev_need_sync(device) && dma_max_mapping_size(device) == SIZE_MAX;
}

bool dma_engine_start(struct dma_chan *channel, dma_addr_t to, dma_addr_t from, size_t bytes,
		      dma_async_tx_callback_result callback, void *parameter)
{
	unsigned long flags = DMA_CTRL_ACK | DMA_PREP_INTERRUPT;
	struct dma_async_tx_descriptor *tx;

	/* Some providers hold a lock from here to the submission: nothing may come in between. */
	tx = dmaengine_prep_dma_memcpy(channel, to, from, bytes, flags);
	if (!tx)
		return false;
	tx->callback_result = callback;
	tx->callback_param = parameter;
	return !dma_submit_error(dmaengine_submit(tx));
}

void dma_engine_issue(struct dma_chan *channel)
{
	dma_async_issue_pending(channel);
}

int dma_engine_result(const struct dmaengine_result *result)
{
	if (!result || result->result == DMA_TRANS_NOERROR)
		return 0;
	return result->result == DMA_TRANS_ABORTED ? 1 : 2;
}

int dma_engine_map(struct device *device, struct sg_table *table, struct page **pages,
		   unsigned int count, int direction)
{
	int ret;

	ret = sg_alloc_table_from_pages(table, pages, count, 0, (unsigned long)count << PAGE_SHIFT,
					GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (ret)
		return ret;
	ret = dma_map_sgtable(device, table, direction, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		sg_free_table(table);
	return ret;
}

void dma_engine_unmap(struct device *device, struct sg_table *table, int direction)
{
	dma_unmap_sgtable(device, table, direction, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(table);
}

struct scatterlist *dma_engine_next_segment(struct scatterlist *segment)
{
	return sg_next(segment);
}

dma_addr_t dma_engine_segment_address(struct scatterlist *segment)
{
	return sg_dma_address(segment);
}

unsigned int dma_engine_segment_length(struct scatterlist *segment)
{
	return sg_dma_len(segment);
}

struct workqueue_struct *dma_engine_alloc_queue(void)
{
	return alloc_workqueue("dma_engine", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
}

void dma_engine_destroy_queue(struct workqueue_struct *queue)
{
	destroy_workqueue(queue);
}

void dma_engine_get_device(struct device *device)
{
	get_device(device);
}

void dma_engine_put_device(struct device *device)
{
	put_device(device);
}

struct task_struct *dma_engine_start_thread(int (*run)(void *parameter), void *parameter)
{
	return kthread_run(run, parameter, "dma_engine");
}

void dma_engine_stop_thread(struct task_struct *task)
{
	kthread_stop(task);
}

bool dma_engine_sleep_or_stop(unsigned int milliseconds)
{
	if (!kthread_should_stop())
		schedule_timeout_interruptible(msecs_to_jiffies(milliseconds));
	return kthread_should_stop();
}

int dma_engine_get_fd(const struct file_operations *operations, void *private)
{
	return anon_inode_getfd("[dma_engine]", operations, private, O_RDONLY | O_CLOEXEC);
}

void dma_engine_close_fd(int fd)
{
	close_fd(fd);
}
