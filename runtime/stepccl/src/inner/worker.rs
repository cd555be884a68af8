//! The thread that drives what nobody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Inner, lock};
use crate::progress::Patience;

/// Sleep of the worker while somebody drives who does not wait for what the worker is for.
const WORKER_STAND_BY: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
pub(super) struct Worker {
    thread: Mutex<Option<JoinHandle<()>>>,
    spawned: AtomicBool,
    stop: AtomicBool,
    /// The worker has, or is about to take, the progress lock.
    driving: AtomicBool,
    bell: Mutex<()>,
    rung: Condvar,
}

impl Worker {
    /// Whether it has, or is about to take, the progress lock.
    pub fn is_driving(&self) -> bool {
        self.driving.load(Ordering::SeqCst)
    }

    /// Let it end soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Wait for its end, unless this is its thread.
    pub fn join(&self) {
        drop(lock(&self.bell));
        self.rung.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A worker that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Inner {
    /// Nobody waits for what was queued: let the worker drive it.
    pub fn leave(self: &Arc<Self>) {
        self.spawn_worker();
        self.kick_worker();
    }

    pub(super) fn spawn_worker(self: &Arc<Self>) {
        if self.worker.spawned.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::clone(self);
        let name = format!("stepccl-{}", self.rank);
        match std::thread::Builder::new().name(name).spawn(move || inner.work()) {
            Ok(thread) => *lock(&self.worker.thread) = Some(thread),
            // Whoever waits drives; only what nobody waits for stands still.
            Err(_) => self.worker.spawned.store(false, Ordering::Release),
        }
    }

    /// Tell the worker to look whether there is something to drive.
    pub fn kick_worker(&self) {
        if self.worker.spawned.load(Ordering::Acquire) && self.has_work() {
            drop(lock(&self.worker.bell));
            self.worker.rung.notify_one();
        }
    }

    fn has_work(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) > 0 && self.waiting.load(Ordering::SeqCst) == 0
    }

    /// The worker thread: drives what nobody waits for.
    fn work(&self) {
        // The caller computes beside this thread: it looks only briefly before it sleeps.
        let patience = Patience { looks: self.patience.looks.min(200) };
        let stop = || self.worker.stop.load(Ordering::Acquire);
        while !stop() {
            let bell = lock(&self.worker.bell);
            if !self.has_work() && !stop() {
                drop(self.worker.rung.wait_timeout(bell, Duration::from_millis(500)));
                continue;
            }
            drop(bell);
            self.worker.driving.store(true, Ordering::SeqCst);
            let progress = self.try_progress();
            let drives = progress.is_some();
            if let Some(progress) = progress {
                self.drive(progress, patience, None, &|| stop() || !self.has_work());
            }
            self.worker.driving.store(false, Ordering::SeqCst);
            if drives {
                self.hand_over();
            } else {
                std::thread::sleep(WORKER_STAND_BY);
            }
        }
    }
}
