//! Usage: `ioat-model SOCKET [CHANNELS]`
//!
//! Serve one guest over a socket, then say how much was copied.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use stepccl_ioat_model::device::{Device, interrupts, regions};
use vfio_user::Server;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let socket = arguments.next();
    let channels = arguments.next().map_or(Ok(2), |text| text.parse::<u16>());
    let (Some(socket), Ok(channels @ 1..=16)) = (socket, channels) else {
        eprintln!("usage: ioat-model SOCKET [CHANNELS], 1 to 16 channels");
        return ExitCode::FAILURE;
    };
    let server = match Server::new(Path::new(&socket), true, interrupts(channels), regions()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{socket}: {error:?}");
            return ExitCode::FAILURE;
        }
    };
    let mut device = Device::new(channels);
    let served = server.run(&mut device);
    let copies = device.shared().copies.lock().map_or(0, |copies| *copies);
    let bytes = device.shared().bytes.load(Ordering::Relaxed);
    println!("{copies} copies, {bytes} bytes");
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
