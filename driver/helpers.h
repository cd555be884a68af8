/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DMA_ENGINE_HELPERS_H
#define DMA_ENGINE_HELPERS_H

#include <linux/types.h>

struct eventfd_ctx;
struct mm_struct;
struct page;
struct vm_area_struct;

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

#endif
