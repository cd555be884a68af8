//! The serving side: one thread, one loop over `poll`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use super::frame::FrameBuffer;
use super::message::{
    Answer, Greeting, Hello, MAX_FRAME_BYTES, MAX_GREETING_BYTES, Reply, Request, VALUE, VERSION,
    client_transcript, server_transcript,
};
use super::table::Table;
use crate::auth::Nonce;
use crate::{Secret, StoreError};

/// How long a client may take to prove the secret.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds of silence before a client's host is asked whether it lives.
const KEEPALIVE_SECONDS: u32 = 30;

/// What a server spends at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpStoreLimits {
    /// Connections at once; each client has one a thread.
    pub connections: usize,
    /// Bytes of keys, values and unfinished commands.
    pub bytes: usize,
}

impl Default for TcpStoreLimits {
    /// 8192 connections and 256 MiB.
    fn default() -> Self {
        Self { connections: 8192, bytes: 256 << 20 }
    }
}

/// A store that this process serves; stops when dropped.
#[derive(Debug)]
pub struct TcpStoreServer {
    address: SocketAddr,
    /// Closing it ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl TcpStoreServer {
    /// Serve at `address` (`host:port`; port 0 takes a free one) to clients that know `secret`, or
    /// to everybody without one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`] where the address cannot be used, [`StoreError::Io`] where the
    /// thread cannot start.
    pub fn bind(
        address: &str,
        secret: Option<Secret>,
        limits: TcpStoreLimits,
    ) -> Result<Self, StoreError> {
        let fail = |e: std::io::Error| StoreError::Unreachable {
            address: address.to_owned(),
            message: format!("cannot serve there: {e}"),
        };
        let listener = TcpListener::bind(address).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let bound = listener.local_addr().map_err(fail)?;
        let (stop, stopped) = UnixStream::pair().map_err(fail)?;
        let server = Server {
            listener,
            stopped,
            secret,
            clients: Vec::new(),
            table: Table::new(limits.bytes),
            limits,
        };
        let thread = std::thread::Builder::new()
            .name("stepccl-store".to_owned())
            .spawn(move || server.run())
            .map_err(|e| StoreError::Io {
                what: "start the thread of the store".to_owned(),
                message: e.to_string(),
            })?;
        Ok(Self { address: bound, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TcpStoreServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing; a panic in it has been printed.
            drop(thread.join());
        }
    }
}

#[derive(Debug)]
enum State {
    /// Has not proven the secret.
    Greeted {
        nonce: Nonce,
        deadline: Instant,
    },
    Ready,
    /// Waits for a key.
    Waiting {
        key: String,
        until: Instant,
    },
    /// Gets what is to be sent, then ends.
    Closing {
        deadline: Instant,
    },
}

/// One connection. Has at most one command in progress: none is read while an answer is unsent.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    state: State,
    input: FrameBuffer,
    head: Vec<u8>,
    /// Value after the head, shared with the table.
    body: Arc<[u8]>,
    sent: usize,
}

impl Client {
    fn send(&mut self, head: Vec<u8>, body: Arc<[u8]>) {
        (self.head, self.body, self.sent) = (head, body, 0);
    }

    fn reply(&mut self, reply: &Reply) {
        self.send(reply.encode(), Arc::new([]));
    }

    fn value(&mut self, value: Arc<[u8]>) {
        self.send(super::frame::head(&[VALUE], value.len()), value);
    }

    fn unsent(&self) -> bool {
        self.sent < self.head.len() + self.body.len()
    }

    /// Longest frame it may send now.
    const fn most(&self) -> usize {
        match self.state {
            State::Greeted { .. } => MAX_GREETING_BYTES,
            _ => MAX_FRAME_BYTES,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Greeted { deadline, .. } | State::Closing { deadline } => Some(deadline),
            State::Waiting { until, .. } => Some(until),
            State::Ready => None,
        }
    }

    /// `false` where the connection ended.
    fn flush(&mut self) -> bool {
        while self.unsent() {
            let rest = match self.head.get(self.sent..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => &self.body[self.sent - self.head.len()..],
            };
            match self.stream.write(rest) {
                Ok(0) => return false,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        self.send(Vec::new(), Arc::new([]));
        !matches!(self.state, State::Closing { .. })
    }

    /// The next command, if it is whole. An error ends the connection.
    fn read(&mut self, room: usize) -> Result<Option<Vec<u8>>, ()> {
        let mut buffer = [0; 16 << 10];
        loop {
            let most = self.most();
            if let Some(frame) = self.input.take(most).map_err(drop)? {
                return Ok(Some(frame));
            }
            if self.input.held() > room {
                return Err(());
            }
            let wanted = self.input.wanted(most).map_err(drop)?.min(buffer.len());
            match self.stream.read(&mut buffer[..wanted]) {
                Ok(0) => return Err(()),
                Ok(count) => self.input.push(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(_) => return Err(()),
            }
        }
    }
}

struct Server {
    listener: TcpListener,
    stopped: UnixStream,
    secret: Option<Secret>,
    clients: Vec<Client>,
    table: Table,
    limits: TcpStoreLimits,
}

impl Server {
    fn run(mut self) {
        while self.wait() {
            self.accept();
            // A key that one client sets may end another's wait: once more after any change.
            while self.turn() {}
        }
    }

    /// Sleep until something can be done; `false` where the server shall stop.
    fn wait(&self) -> bool {
        let mut until = Instant::now() + Duration::from_secs(60);
        let mut fds = vec![
            PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        for client in &self.clients {
            until = client.deadline().map_or(until, |deadline| until.min(deadline));
            let events = match client.state {
                _ if client.unsent() => PollFlags::POLLOUT,
                _ => PollFlags::POLLIN,
            };
            fds.push(PollFd::new(client.stream.as_fd(), events));
        }
        let left = until.saturating_duration_since(Instant::now());
        let millis = PollTimeout::try_from(left.as_nanos().div_ceil(1_000_000));
        match poll(&mut fds, millis.unwrap_or(PollTimeout::MAX)) {
            Ok(_) => fds[0].any() != Some(true),
            // Interrupted, or out of kernel memory for now: a short rest and again.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(1));
                true
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Most likely out of descriptors; the connection stays in the queue, and
                    // without a rest this would spin.
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            };
            // One that cannot be set up is dropped, and its client sees the end.
            drop(self.greet(stream));
        }
    }

    fn greet(&mut self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &KEEPALIVE_SECONDS)?;
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(std::io::Error::other)?;
        let deadline = Instant::now() + GREETING_TIMEOUT;
        let mut client = Client {
            stream,
            state: State::Greeted { nonce, deadline },
            input: FrameBuffer::default(),
            head: Vec::new(),
            body: Arc::new([]),
            sent: 0,
        };
        let greeting = Greeting { version: VERSION, secret: self.secret.is_some(), nonce };
        client.send(greeting.encode(), Arc::new([]));
        // A flood of strangers must not keep ranks out: the longest silent one goes first.
        if self.clients.len() >= self.limits.connections.max(1) {
            let stranger =
                self.clients.iter().position(|c| matches!(c.state, State::Greeted { .. }));
            match stranger {
                Some(at) => drop(self.clients.remove(at)),
                None => return Ok(()),
            }
        }
        self.clients.push(client);
        Ok(())
    }

    /// Serve every client once; `true` where an entry changed.
    fn turn(&mut self) -> bool {
        let mut changed = false;
        let now = Instant::now();
        let held: usize = self.clients.iter().map(|c| c.input.held()).sum();
        let clients = std::mem::take(&mut self.clients);
        for mut client in clients {
            // The largest command of one client always fits, or nobody could finish any.
            let room = self.table.room().saturating_sub(held).max(64 << 10);
            let room = client.input.held() + room;
            if self.serve(&mut client, room, now, &mut changed) {
                self.clients.push(client);
            }
        }
        changed
    }

    /// `false` where the connection ended.
    fn serve(
        &mut self,
        client: &mut Client,
        room: usize,
        now: Instant,
        changed: &mut bool,
    ) -> bool {
        loop {
            if !client.flush() {
                return false;
            }
            if client.unsent() {
                return true;
            }
            match &client.state {
                State::Waiting { key, until } => {
                    if let Some(value) = self.table.get(key) {
                        client.value(value);
                    } else if *until <= now {
                        client.reply(&Reply::Absent);
                    } else {
                        return silent(&client.stream);
                    }
                    client.state = State::Ready;
                    continue;
                }
                State::Greeted { deadline, .. } | State::Closing { deadline }
                    if *deadline <= now =>
                {
                    return false;
                }
                _ => {}
            }
            let frame = match client.read(room) {
                Ok(Some(frame)) => frame,
                Ok(None) => return true,
                Err(()) => return false,
            };
            if let State::Greeted { nonce, .. } = client.state {
                let answer = self.admit(&nonce, Hello::parse(&frame));
                client.state = match answer {
                    Answer::Welcome { .. } => State::Ready,
                    Answer::Refuse { .. } => State::Closing { deadline: now + GREETING_TIMEOUT },
                };
                client.send(answer.encode(), Arc::new([]));
            } else if let Some(request) = Request::parse(&frame) {
                *changed |= self.obey(client, request, now);
            } else {
                client.reply(&Reply::Refused("a command that is not known here".to_owned()));
                client.state = State::Closing { deadline: now + GREETING_TIMEOUT };
            }
        }
    }

    /// What to say to a hello.
    fn admit(&self, nonce: &Nonce, hello: Option<Hello>) -> Answer {
        let refuse = |reason: &str| Answer::Refuse { reason: reason.to_owned() };
        let Some(hello) = hello else { return refuse("the hello cannot be read") };
        if hello.version != VERSION {
            let version = hello.version;
            return Answer::Refuse {
                reason: format!("client version {version}, server version {VERSION}"),
            };
        }
        match (&self.secret, hello.secret) {
            (None, false) => Answer::Welcome { tag: [0; 32] },
            (None, true) => refuse("the client has a secret and the server has none"),
            (Some(_), false) => refuse("the server has a secret and the client has none"),
            (Some(secret), true) => {
                if client_transcript(secret, nonce, &hello.nonce).verify(&hello.tag) {
                    let tag = server_transcript(secret, nonce, &hello.nonce).tag();
                    Answer::Welcome { tag }
                } else {
                    refuse("client and server hold different secrets")
                }
            }
        }
    }

    /// Do a command; `true` where an entry changed.
    fn obey(&mut self, client: &mut Client, request: Request, now: Instant) -> bool {
        let result = match request {
            Request::Get { key, millis } => {
                // The state answers, at once where the key is there.
                let until = now + Duration::from_millis(u64::from(millis));
                client.state = State::Waiting { key, until };
                return false;
            }
            Request::Set { key, value } => self.table.set(key, &value).map(|()| Reply::Done),
            Request::Add { key, n } => self.table.add(key, n).map(Reply::Sum),
        };
        let changed = result.is_ok();
        client.reply(&result.unwrap_or_else(Reply::of_error));
        changed
    }
}

/// Whether a client that waits is silent, as it must be: it has neither ended nor sent more.
fn silent(stream: &TcpStream) -> bool {
    let peeked = stream.peek(&mut [0]);
    peeked.is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
}
