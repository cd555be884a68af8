// SPDX-License-Identifier: GPL-2.0
/*
 * Functions around inlines, macros and types that the kernel crate does not bind.
 * Nothing is decided here; helpers.rs has the contract of each.
 */
#include <linux/capability.h>
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/ratelimit.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

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
