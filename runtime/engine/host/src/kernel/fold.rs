//! The loops of every reduction.
//!
//! They are written for the compiler to vectorise. What hinders it is a result that may overlap a
//! source, so each loop either reads and writes through one pointer, or goes by way of a block on
//! the stack, or reads and writes memory that is apart. The operations on an element do not depend
//! on the loop it is in, so every instruction set gives the same bits.

use std::mem::MaybeUninit;

use super::combine::Combine;
use super::element::Element;
use super::isa::Isa;
use super::job::Job;
use super::number::Number;

/// Numbers of a block: with a second block for conversions it stays in the first level cache.
const BLOCK: usize = 512;

type Block<N> = MaybeUninit<[N; BLOCK]>;

/// Combines all sources of `job` into its result.
///
/// # Safety
/// As for [`super::reduce`].
#[inline(always)]
pub(super) unsafe fn fold<I: Isa, E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
    isa: I,
    job: Job<'_>,
) {
    let dst = job.dst.cast::<E::Raw>();
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match *job.srcs {
            // Combining two values gives the same bits in either order.
            [a, b] if E::DIRECT && b == job.dst => onto::<E, C, DIVIDE>(dst, a.cast(), job),
            [a, b] if E::DIRECT && a == job.dst => onto::<E, C, DIVIDE>(dst, b.cast(), job),
            [a, b] if E::DIRECT => pair::<E, C, DIVIDE>(dst, a.cast(), b.cast(), job),
            [a, b] if !E::DIRECT && E::pair::<I, C, DIVIDE>(isa, [a, b], job) => {}
            _ => blocks::<I, E, C, DIVIDE>(isa, job),
        }
    }
}

/// Divides if `DIVIDE`, and rounds to an element.
#[inline(always)]
pub(super) fn finish<E: Element, const DIVIDE: bool>(
    number: E::Number,
    by: <E::Number as Number>::Divisor,
) -> E::Raw {
    E::narrow(if DIVIDE { number.divided(by) } else { number })
}

/// Combines `dst` and `src` into `dst`.
///
/// # Safety
/// As for [`super::reduce`].
#[inline(always)]
unsafe fn onto<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
    dst: *mut E::Raw,
    src: *const E::Raw,
    job: Job<'_>,
) {
    let by = E::Number::divisor(job.divisor);
    for i in 0..job.count {
        // SAFETY:
        // - `i` is below the count the caller vouches for;
        // - unaligned accesses ask for no alignment;
        // - every pattern of bits is a valid `E::Raw`.
        unsafe {
            let (a, b) = (dst.add(i).read_unaligned(), src.add(i).read_unaligned());
            let number = C::combine(E::widen(a), E::widen(b));
            dst.add(i).write_unaligned(finish::<E, DIVIDE>(number, by));
        }
    }
}

/// Combines `a` and `b` into `dst`, which is neither.
///
/// # Safety
/// As for [`super::reduce`].
#[inline(always)]
unsafe fn pair<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
    dst: *mut E::Raw,
    a: *const E::Raw,
    b: *const E::Raw,
    job: Job<'_>,
) {
    let by = E::Number::divisor(job.divisor);
    for i in 0..job.count {
        // SAFETY: as in `onto`.
        unsafe {
            let (a, b) = (a.add(i).read_unaligned(), b.add(i).read_unaligned());
            let number = C::combine(E::widen(a), E::widen(b));
            dst.add(i).write_unaligned(finish::<E, DIVIDE>(number, by));
        }
    }
}

/// Combines any number of sources block by block, so that each source is read once and the result
/// written once.
///
/// # Safety
/// As for [`super::reduce`].
#[inline(always)]
unsafe fn blocks<I: Isa, E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
    isa: I,
    job: Job<'_>,
) {
    let mut numbers = Block::<E::Number>::uninit();
    let mut others = Block::<E::Number>::uninit();
    let numbers = numbers.as_mut_ptr().cast::<E::Number>();
    let others = others.as_mut_ptr().cast::<E::Number>();
    let by = E::Number::divisor(job.divisor);
    let mut done = 0;
    while done < job.count {
        let count = BLOCK.min(job.count - done);
        // SAFETY:
        // - elements `done .. done + count` lie within the count the caller vouches for;
        // - each block has room for `count` numbers and is written before it is read;
        // - the result's elements are written after all their sources were read.
        unsafe {
            let at = |src: *const u8| src.cast::<E::Raw>().add(done);
            E::load(isa, at(job.srcs[0]), numbers, count);
            let (pairs, last) = job.srcs[1..].as_chunks::<2>();
            for &[a, b] in pairs {
                absorb_two::<I, E, C>(isa, numbers, others, [at(a), at(b)], count);
            }
            for &src in last {
                absorb::<I, E, C>(isa, numbers, others, at(src), count);
            }
            if DIVIDE {
                for i in 0..count {
                    numbers.add(i).write(numbers.add(i).read().divided(by));
                }
            }
            E::store(isa, numbers, job.dst.cast::<E::Raw>().add(done), count);
        }
        done += count;
    }
}

/// Combines `count` elements of `src` onto `numbers`; `others` is room for as many.
///
/// # Safety
/// - `src` is valid for reads of `count` elements.
/// - `numbers` and `others` are blocks of at least `count`, and `numbers` is written.
#[inline(always)]
unsafe fn absorb<I: Isa, E: Element, C: Combine<E::Number>>(
    isa: I,
    numbers: *mut E::Number,
    others: *mut E::Number,
    src: *const E::Raw,
    count: usize,
) {
    // SAFETY: no index reaches `count`, and `others` is written before it is read.
    unsafe {
        if E::DIRECT {
            for i in 0..count {
                let other = E::widen(src.add(i).read_unaligned());
                numbers.add(i).write(C::combine(numbers.add(i).read(), other));
            }
        } else {
            E::load(isa, src, others, count);
            for i in 0..count {
                numbers.add(i).write(C::combine(numbers.add(i).read(), others.add(i).read()));
            }
        }
    }
}

/// [`absorb`] of two sources, the first one first, which spares a pass over `numbers`.
///
/// # Safety
/// As for [`absorb`].
#[inline(always)]
unsafe fn absorb_two<I: Isa, E: Element, C: Combine<E::Number>>(
    isa: I,
    numbers: *mut E::Number,
    others: *mut E::Number,
    [a, b]: [*const E::Raw; 2],
    count: usize,
) {
    // SAFETY: no index reaches `count`.
    unsafe {
        if E::DIRECT {
            for i in 0..count {
                let first = C::combine(numbers.add(i).read(), E::widen(a.add(i).read_unaligned()));
                numbers.add(i).write(C::combine(first, E::widen(b.add(i).read_unaligned())));
            }
        } else {
            absorb::<I, E, C>(isa, numbers, others, a, count);
            absorb::<I, E, C>(isa, numbers, others, b, count);
        }
    }
}

/// Multiplies each of `count` elements of `src` by `factor` into `dst`, block by block.
///
/// # Safety
/// As for [`super::scale`].
#[inline(always)]
pub(super) unsafe fn scale<I: Isa, E: Element>(
    isa: I,
    dst: *mut u8,
    src: *const u8,
    count: usize,
    factor: f64,
) {
    let mut numbers = Block::<E::Number>::uninit();
    let numbers = numbers.as_mut_ptr().cast::<E::Number>();
    let by = E::Number::factor(factor);
    let mut done = 0;
    while done < count {
        let elements = BLOCK.min(count - done);
        // SAFETY:
        // - elements `done .. done + elements` lie within the count the caller vouches for;
        // - the block has room for as many numbers and is written before it is read;
        // - elements of the result are written after those of the source were read.
        unsafe {
            E::load(isa, src.cast::<E::Raw>().add(done), numbers, elements);
            for i in 0..elements {
                numbers.add(i).write(numbers.add(i).read().scaled(by));
            }
            E::store(isa, numbers, dst.cast::<E::Raw>().add(done), elements);
        }
        done += elements;
    }
}
