//! Every type, every operation it has, odd addresses and factors, with small whole numbers whose
//! results are exact in every type.

mod common;

use common::{config, on_ranks};
use stepccl::{Algorithm, Call, Collective, Communicator, Config, DType, Kind, Memory, ReduceOp};

/// A whole number; complex where the type is.
type Whole = [i128; 2];

/// Bytes around a buffer, so that its elements lie at odd addresses.
const ODD: usize = 13;

/// What `rank` multiplies its input by.
fn factor(rank: u32) -> i128 {
    i128::from(1 + rank % 2)
}

fn is_bitwise(op: ReduceOp) -> bool {
    matches!(op, ReduceOp::BitAnd | ReduceOp::BitOr | ReduceOp::BitXor)
}

/// Element `i` of the input of `rank`.
fn element(dtype: DType, op: ReduceOp, rank: u32, i: usize) -> Whole {
    // The same on every rank, so that an average is exact.
    let rank = if op == ReduceOp::Avg { 0 } else { i128::from(rank) };
    let number = i as i128 * 7 + rank * 5 + i as i128 / 11;
    match dtype.kind() {
        Kind::Complex => [number % 2, number / 2 % 2],
        Kind::Signed | Kind::Unsigned if is_bitwise(op) => [number * 0x3b % 128, 0],
        Kind::Truth => [number % 2, 0],
        _ if op == ReduceOp::Prod => [1 + number % 2, 0],
        _ => [number % 2, 0],
    }
}

fn combine(truth: bool, op: ReduceOp, [a, b]: Whole, [c, d]: Whole) -> Whole {
    match op {
        ReduceOp::Sum if truth => [a | c, 0],
        ReduceOp::Prod => [a * c - b * d, a * d + b * c],
        ReduceOp::Max => [a.max(c), 0],
        ReduceOp::Min => [a.min(c), 0],
        ReduceOp::BitAnd => [a & c, 0],
        ReduceOp::BitOr => [a | c, 0],
        ReduceOp::BitXor => [a ^ c, 0],
        _ => [a + c, b + d],
    }
}

/// Element `i` of the reduction of all inputs.
fn reduced(dtype: DType, op: ReduceOp, ranks: u32, i: usize) -> Whole {
    (0..ranks)
        .map(|rank| {
            let value = element(dtype, op, rank, i);
            if op == ReduceOp::PremulSum { value.map(|x| x * factor(rank)) } else { value }
        })
        .reduce(|a, b| combine(dtype == DType::Bool, op, a, b))
        .map(|sum| if op == ReduceOp::Avg { sum.map(|x| x / i128::from(ranks)) } else { sum })
        .unwrap()
}

/// Bytes of a number that the type holds exactly.
fn encode(dtype: DType, [re, im]: Whole) -> Vec<u8> {
    let (whole, half) = (re.unsigned_abs(), half::f16::from_f64(re as f64));
    match dtype {
        DType::F32 => (re as f32).to_ne_bytes().to_vec(),
        DType::F64 => (re as f64).to_ne_bytes().to_vec(),
        DType::F16 => half.to_ne_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(re as f64).to_ne_bytes().to_vec(),
        DType::F8E4M3 if re == 0 => vec![0],
        DType::F8E4M3 => {
            let exponent = whole.ilog2();
            vec![((exponent + 7) << 3) as u8 | ((whole << 3 >> exponent) & 7) as u8]
        }
        // The upper byte of a binary16.
        DType::F8E5M2 => vec![(half.to_bits() >> 8) as u8],
        DType::C64 => [re as f32, im as f32].map(f32::to_ne_bytes).concat(),
        DType::C128 => [re as f64, im as f64].map(f64::to_ne_bytes).concat(),
        _ => re.to_le_bytes()[..dtype.size()].to_vec(),
    }
}

/// Makes zeros of a padded result of complex products positive, as those of whole numbers are.
fn without_negative_zeros(dtype: DType, padded: &mut [u8]) {
    if dtype.kind() == Kind::Complex {
        let end = padded.len() - ODD;
        for part in padded[ODD..end].chunks_exact_mut(dtype.size() / 2) {
            if part.last() == Some(&0x80) && part[..part.len() - 1].iter().all(|byte| *byte == 0) {
                part.fill(0);
            }
        }
    }
}

/// Runs `collective` out of and into odd addresses, and in place; both must give `want`.
fn run(
    comm: &Communicator,
    (collective, dtype, op): (Collective, DType, ReduceOp),
    count: usize,
    (input, want): (&[u8], &[u8]),
) {
    let what = format!("{collective} {op} of {count} {dtype}, rank {}", comm.rank());
    let memory = |buffer: &mut Vec<u8>, len: usize| match len {
        0 => Memory::None,
        _ => Memory::Contiguous(buffer.as_mut_ptr().wrapping_add(ODD)),
    };
    let padded = |data: &[u8]| [&[0x5a; ODD][..], data, &[0x5a; ODD]].concat();
    let mut from = padded(input);
    let mut to = padded(&vec![0xee; want.len()]);
    let call = Call {
        collective,
        dtype,
        op,
        premul: factor(comm.rank()) as f64,
        count,
        input: memory(&mut from, input.len()),
        output: memory(&mut to, want.len()),
    };
    // SAFETY:
    // - Both vectors live until `run` returns, and nobody else touches them.
    unsafe { comm.run(call.clone(), None) }.unwrap();
    without_negative_zeros(dtype, &mut to);
    assert!(to == padded(want), "{what}");
    assert!(from == padded(input), "{what}: the input has changed");
    if matches!(collective, Collective::AllReduce) {
        let call = Call { output: call.input.clone(), ..call };
        // SAFETY:
        // - As above; an all_reduce may be in place.
        unsafe { comm.run(call, None) }.unwrap();
        without_negative_zeros(dtype, &mut from);
        assert!(from == padded(want), "{what}, in place");
    }
}

fn everything(comm: &Communicator, dtype: DType, counts: &[usize]) {
    let (me, ranks) = (comm.rank(), comm.ranks());
    let root = ranks - 1;
    for &count in counts {
        for op in ReduceOp::all_of(dtype) {
            let input = |blocks: usize| -> Vec<u8> {
                (0..blocks * count).flat_map(|i| encode(dtype, element(dtype, op, me, i))).collect()
            };
            let output = |first: usize| -> Vec<u8> {
                (first..first + count)
                    .flat_map(|i| encode(dtype, reduced(dtype, op, ranks, i)))
                    .collect()
            };
            let (one, many) = (input(1), input(ranks as usize));
            run(comm, (Collective::AllReduce, dtype, op), count, (&one, &output(0)));
            let own = output(me as usize * count);
            run(comm, (Collective::ReduceScatter, dtype, op), count, (&many, &own));
            let all = if me == root { output(0) } else { Vec::new() };
            run(comm, (Collective::Reduce { root }, dtype, op), count, (&one, &all));
        }
        let given = |rank: u32| -> Vec<u8> {
            let number = |i| element(dtype, ReduceOp::Sum, rank, i);
            (0..count).flat_map(|i| encode(dtype, number(i))).collect()
        };
        let gathered: Vec<u8> = (0..ranks).flat_map(given).collect();
        let gather = (Collective::AllGather, dtype, ReduceOp::Sum);
        run(comm, gather, count, (&given(me), &gathered));
    }
}

#[test]
fn every_type_and_operation_at_odd_addresses() {
    for ranks in [1, 2, 3, 5] {
        on_ranks(ranks, &config(), |comm| {
            for dtype in DType::ALL {
                everything(comm, dtype, &[1, 2, 63, 5000]);
            }
        });
    }
}

/// Every way in which an input reaches a reduction or a staging is multiplied exactly once.
#[test]
fn every_algorithm_multiplies_every_input_once() {
    for algorithm in Algorithm::ALL {
        for ranks in [2, 3, 4, 5] {
            let config = Config { algorithm: Some(algorithm), ..config() };
            on_ranks(ranks, &config, |comm| {
                for dtype in [DType::Bf16, DType::I32, DType::C64, DType::F8E5M2] {
                    everything(comm, dtype, &[3, 1000]);
                }
            });
        }
    }
}

#[test]
fn channels_and_small_pages_multiply_as_well() {
    let channels = Config { channels: 2, channel_min_bytes: 64, ..config() };
    let pages = Config { page_bytes: Some(256), pipeline_depth: Some(3), ..config() };
    for config in [channels, pages] {
        on_ranks(3, &config, |comm| everything(comm, DType::F32, &[1000, 20_000]));
    }
}

/// A product that is rounded to a short type is rounded before it is added, by every rank alike.
#[test]
fn ranks_agree_on_the_bits_of_premultiplied_sums() {
    for algorithm in [Algorithm::Direct, Algorithm::TwoShot] {
        let config = Config { algorithm: Some(algorithm), ..config() };
        let results = on_ranks(3, &config, |comm| {
            let mut data: Vec<half::bf16> = (0..999u32)
                .map(|i| half::bf16::from_f32((i * 37 + comm.rank() * 11) as f32 / 64.0))
                .collect();
            let memory = Memory::Contiguous(data.as_mut_ptr().cast());
            let call = Call {
                collective: Collective::AllReduce,
                dtype: DType::Bf16,
                op: ReduceOp::PremulSum,
                premul: 1.0 / 3.0,
                count: data.len(),
                input: memory.clone(),
                output: memory,
            };
            // SAFETY:
            // - The vector lives until `run` returns, and nobody else touches it.
            unsafe { comm.run(call, None) }.unwrap();
            data
        });
        assert!(results.iter().all(|result| *result == results[0]), "{algorithm}");
        for (i, got) in results[0].iter().enumerate() {
            let third = |rank: usize| {
                let value = half::bf16::from_f32((i * 37 + rank * 11) as f32 / 64.0).to_f32();
                half::bf16::from_f32(value * (1.0_f64 / 3.0) as f32).to_f32()
            };
            let want = half::bf16::from_f32(third(0) + third(1) + third(2));
            assert_eq!(*got, want, "{algorithm}: element {i}");
        }
    }
}
