//! The asking side.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::frame::FrameBuffer;
use super::message::{
    Answer, Greeting, Hello, MAX_FRAME_BYTES, MAX_GREETING_BYTES, Reply, Request, VERSION,
    client_transcript, server_transcript,
};
use crate::auth::Nonce;
use crate::backoff::Backoff;
use crate::store::{Store, check_key, check_value};
use crate::{Secret, StoreError};

/// Longest wait asked of the server at once, so that a dead server is noticed.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A client of a [`crate::TcpStoreServer`].
///
/// Threads may share it: each call uses a connection of its own, kept for the next call.
#[derive(Debug)]
pub struct TcpStore {
    address: String,
    secret: Option<Secret>,
    timeout: Duration,
    idle: Mutex<Vec<TcpStream>>,
}

impl TcpStore {
    /// Connect to the server at `address` (`host:port`), which may come up later, for at most
    /// `timeout`; every later call may take as long.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`] where nobody answers in time, [`StoreError::Refused`] where
    /// secrets or versions differ, [`StoreError::Protocol`] where something else listens there.
    pub fn connect(
        address: &str,
        secret: Option<Secret>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let store = Self { address: address.to_owned(), secret, timeout, idle: Mutex::default() };
        let stream = store.open(deadline_in(timeout))?;
        store.put_back(stream);
        Ok(store)
    }

    /// A connection on which both sides have proven the secret.
    fn open(&self, deadline: Instant) -> Result<TcpStream, StoreError> {
        let mut backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(200));
        let mut stream = loop {
            match self.dial(deadline) {
                Ok(stream) => break stream,
                Err(error) if !backoff.sleep_until(deadline) => {
                    return Err(self.unreachable(&error.to_string()));
                }
                Err(_) => {}
            }
        };
        let greeting = Greeting::parse(&self.read(&mut stream, MAX_GREETING_BYTES, deadline)?)
            .ok_or_else(|| self.protocol("its greeting cannot be read"))?;
        if greeting.version != VERSION {
            let version = greeting.version;
            return Err(self.refused(format!("server version {version}, client {VERSION}")));
        }
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|e| self.unreachable(&e.to_string()))?;
        let tag = match (&self.secret, greeting.secret) {
            (Some(secret), true) => client_transcript(secret, &greeting.nonce, &nonce).tag(),
            // The server says why it refuses, and learns of this client; but a server that asks
            // for no proof is not the one that was meant.
            (Some(_), false) | (None, _) => [0; 32],
        };
        let hello = Hello { version: VERSION, secret: self.secret.is_some(), nonce, tag };
        self.write(&mut stream, &hello.encode(), deadline)?;
        match Answer::parse(&self.read(&mut stream, MAX_GREETING_BYTES, deadline)?) {
            Some(Answer::Refuse { reason }) => Err(self.refused(reason)),
            Some(Answer::Welcome { tag }) => match &self.secret {
                Some(secret)
                    if !server_transcript(secret, &greeting.nonce, &nonce).verify(&tag) =>
                {
                    Err(self.refused("it does not prove the secret".to_owned()))
                }
                _ => Ok(stream),
            },
            None => Err(self.protocol("its answer to the hello cannot be read")),
        }
    }

    fn dial(&self, deadline: Instant) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in self.address.to_socket_addrs()? {
            let left = deadline.saturating_duration_since(Instant::now());
            match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn call(&self, request: &Request, deadline: Instant) -> Result<Reply, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => self.open(deadline)?,
        };
        self.write(&mut stream, &request.encode(), deadline)?;
        let reply = Reply::parse(&self.read(&mut stream, MAX_FRAME_BYTES, deadline)?)
            .ok_or_else(|| self.protocol("its reply cannot be read"))?;
        // Only a connection in step is kept; after an error above it is closed.
        self.put_back(stream);
        Ok(reply)
    }

    fn put_back(&self, stream: TcpStream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// The error of a reply that is not the one due.
    fn unexpected(&self, key: &str, reply: Reply) -> StoreError {
        match reply {
            Reply::Counter(detail) => StoreError::Counter { key: key.to_owned(), detail },
            Reply::Refused(reason) => self.refused(reason),
            _ => self.protocol("its reply is to another command"),
        }
    }

    fn ask(&self, key: &str, wait: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let millis = u32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        let request = Request::Get { key: key.to_owned(), millis };
        match self.call(&request, deadline_in(self.timeout.saturating_add(wait)))? {
            Reply::Value(value) => Ok(Some(value)),
            Reply::Absent => Ok(None),
            other => Err(self.unexpected(key, other)),
        }
    }

    fn write(
        &self,
        stream: &mut TcpStream,
        mut bytes: &[u8],
        deadline: Instant,
    ) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            let left = self.left(deadline)?;
            let wrote = stream.set_write_timeout(Some(left)).and_then(|()| stream.write(bytes));
            match wrote {
                Ok(0) => return Err(self.unreachable("it closed the connection")),
                Ok(count) => bytes = &bytes[count..],
                Err(error) => self.again(&error)?,
            }
        }
        Ok(())
    }

    /// One frame of at most `most` bytes. Memory grows with what arrives, not with what the
    /// length announces.
    fn read(
        &self,
        stream: &mut TcpStream,
        most: usize,
        deadline: Instant,
    ) -> Result<Vec<u8>, StoreError> {
        let mut frame = FrameBuffer::default();
        let mut buffer = [0; 16 << 10];
        loop {
            let wanted = frame.wanted(most).map_err(|e| self.protocol(&e.to_string()))?;
            if let Some(frame) = frame.take(most).map_err(|e| self.protocol(&e.to_string()))? {
                return Ok(frame);
            }
            let left = self.left(deadline)?;
            let buffer = &mut buffer[..wanted.min(16 << 10)];
            match stream.set_read_timeout(Some(left)).and_then(|()| stream.read(buffer)) {
                Ok(0) => return Err(self.unreachable("it closed the connection")),
                Ok(count) => frame.push(&buffer[..count]),
                Err(error) => self.again(&error)?,
            }
        }
    }

    fn left(&self, deadline: Instant) -> Result<Duration, StoreError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.unreachable(&format!("no answer within {:?}", self.timeout)));
        }
        Ok(left)
    }

    /// Whether to go on after an error of the stream.
    fn again(&self, error: &std::io::Error) -> Result<(), StoreError> {
        match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
            _ => Err(self.unreachable(&error.to_string())),
        }
    }

    fn unreachable(&self, message: &str) -> StoreError {
        StoreError::Unreachable { address: self.address.clone(), message: message.to_owned() }
    }

    fn refused(&self, reason: String) -> StoreError {
        StoreError::Refused { address: self.address.clone(), reason }
    }

    fn protocol(&self, detail: &str) -> StoreError {
        StoreError::Protocol { address: self.address.clone(), detail: detail.to_owned() }
    }
}

/// `after` from now; a wait too long to count is as good as an hour, after which it is an error.
fn deadline_in(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(3600))
}

impl Store for TcpStore {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        check_key(key)?;
        check_value(key, value)?;
        let request = Request::Set { key: key.to_owned(), value: value.to_vec() };
        match self.call(&request, deadline_in(self.timeout))? {
            Reply::Done => Ok(()),
            other => Err(self.unexpected(key, other)),
        }
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        check_key(key)?;
        let start = Instant::now();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(value) = self.ask(key, left.min(MAX_WAIT))? {
                return Ok(value);
            }
            if left.is_zero() {
                return Err(StoreError::Timeout { key: key.to_owned(), waited: start.elapsed() });
            }
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        self.ask(key, Duration::ZERO)
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        check_key(key)?;
        match self.call(&Request::Add { key: key.to_owned(), n }, deadline_in(self.timeout))? {
            Reply::Sum(sum) => Ok(sum),
            other => Err(self.unexpected(key, other)),
        }
    }
}
