//! The conformance tests over a service of this process, made of the driver's own parts.

use std::thread;
use std::time::Duration;

use driver_parts::parts::chain::Chain;
use stepccl_device::{Client, CompletionEntry, End, Ring, Service, SubmissionEntry, Taken, Waited};
use stepccl_driver_tests::conformance::{Target, cases};

use dma_engine_uapi::descriptor::opcode;
use dma_engine_uapi::status;
use dma_engine_uapi::submission::flags;

struct InProcess;

impl Target for InProcess {
    type Memory = End;

    fn client(&self, entries: u32) -> Client<End> {
        let (client, service) = Ring::in_process(entries).unwrap();
        thread::spawn(move || serve(service));
        client
    }
}

/// Answer until the client is gone.
fn serve(mut service: Service<End>) {
    let mut chain = Chain::new();
    while service.wait(Duration::from_secs(1)).unwrap() != Waited::Gone {
        loop {
            if service.batch_left() == 0 {
                chain.cut();
            }
            let Taken::Entry(entry) = service.take().unwrap() else { break };
            let completion = if chain.cancels() {
                CompletionEntry::failed(entry.user_data, status::ECANCELED)
            } else {
                answer(&entry)
            };
            chain.end(entry.flags & flags::LINK != 0, completion.outcome().is_ok());
            service.complete(&completion).unwrap();
        }
        service.notify().unwrap();
    }
}

/// A service of node 0 without a region.
fn answer(entry: &SubmissionEntry) -> CompletionEntry {
    let errno = match entry.check(0) {
        Err(rule) => rule.errno(),
        Ok(()) if matches!(entry.desc.opcode, opcode::NOP | opcode::FENCE) => {
            return CompletionEntry::moved(entry.user_data, 0);
        }
        Ok(()) if entry.desc.src_node != 0 || entry.desc.dst_node != 0 => status::EHOSTUNREACH,
        Ok(()) => status::ENOENT,
    };
    CompletionEntry::failed(entry.user_data, errno)
}

#[test]
fn a_service_of_this_process_conforms() {
    for (name, case) in cases::<InProcess>() {
        println!("{name}");
        case(&InProcess);
    }
}
