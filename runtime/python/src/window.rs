//! Operations that are collected, to be started as one.

use std::ops::Range;
use std::time::Duration;

use pyo3::prelude::*;
use stepccl::Request;

/// Memory of one operation.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub bytes: Range<usize>,
    pub written: bool,
}

impl Span {
    fn collides(&self, other: &Self) -> bool {
        (self.written || other.written)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// Operations that may be under way at the same time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub requests: Vec<Request>,
    pub keep: Vec<Py<PyAny>>,
    /// The longest limit of the requests.
    pub timeout: Option<Duration>,
    spans: Vec<Span>,
}

/// What was called since the window was opened, in batches that run one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Window(Vec<Batch>);

impl Window {
    /// Add a request. One that touches what another one of the batch writes begins a new batch,
    /// and so does one that must be alone to tell its source.
    pub(crate) fn push(
        &mut self,
        request: Request,
        spans: Vec<Span>,
        keep: Py<PyAny>,
        timeout: Option<Duration>,
    ) {
        let alone = matches!(request, Request::RecvAny(_));
        let fits = self.0.last().is_some_and(|batch| {
            !alone
                && !matches!(batch.requests[..], [Request::RecvAny(_)])
                && !batch.spans.iter().any(|have| spans.iter().any(|span| span.collides(have)))
        });
        if !fits {
            self.0.push(Batch::default());
        }
        if let Some(batch) = self.0.last_mut() {
            batch.requests.push(request);
            batch.keep.push(keep);
            batch.timeout = batch.timeout.max(timeout);
            batch.spans.extend(spans);
        }
    }

    pub(crate) fn into_batches(self) -> Vec<Batch> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: Range<usize>, written: bool) -> Span {
        Span { bytes, written }
    }

    #[test]
    fn only_what_is_written_collides() {
        let read = span(0..8, false);
        assert!(!read.collides(&span(0..8, false)));
        assert!(read.collides(&span(7..9, true)) && span(7..9, true).collides(&read));
        assert!(!read.collides(&span(8..9, true)));
    }
}
