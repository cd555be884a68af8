//! `Documentation/troubleshooting.md` quotes errors as they are printed: they are provoked here, and
//! looked for in it. `-- --nocapture` prints them, to be copied there.

mod common;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use common::{config, on_ranks};
use stepccl::{
    Communicator, Config, Error, FileStore, Keep, MemoryStore, Message, Outcome, Plan, ReduceOp,
    Request, Secret, TcpStore, Topology,
};

const SHORT: Duration = Duration::from_millis(200);

/// What the page says, or would have to.
struct Page(String);

impl Page {
    fn open() -> Self {
        let page =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/troubleshooting.md");
        Self(plain(&std::fs::read_to_string(page).unwrap()))
    }

    fn quotes(&self, error: impl std::fmt::Display) {
        let text = error.to_string();
        println!("{text}\n");
        assert!(self.0.contains(plain(&text).trim_end()), "the page does not quote: {text}");
    }
}

/// The text with one space between words, and one sign for any number with its unit of time.
fn plain(text: &str) -> String {
    let mut found = String::new();
    let mut before = ["", ""];
    for word in text.split_whitespace() {
        // `pid 12 on HOST`
        let is_host = before[0].starts_with(|c: char| c.is_ascii_digit()) && before[1] == "on";
        before = [before[1], word];
        if is_host {
            found.push_str("HOST ");
            continue;
        }
        let mut rest = word.chars().peekable();
        while let Some(c) = rest.next() {
            if !c.is_ascii_digit() {
                found.push(c);
                continue;
            }
            found.push('#');
            let is_number = |c: &char| c.is_ascii_digit() || *c == '.';
            let mut end = c;
            while let Some(c) = rest.next_if(is_number) {
                end = c;
            }
            let mut unit: String =
                std::iter::from_fn(|| rest.next_if(|c| "nµms".contains(*c))).collect();
            if ["ns", "µs", "ms", "s"].contains(&unit.as_str()) {
                unit.clear();
            }
            if end == '.' {
                unit.insert(0, '.');
            }
            found.push_str(&unit);
        }
        found.push(' ');
    }
    found
}

#[test]
fn numbers_do_not_count() {
    assert_eq!(plain("pid 7 on vm; on"), "pid # on HOST on ");
    assert_eq!(plain("#12 of 1.5ms, 3 GB\n in 20µs. 7."), "## of #, # GB in #. #. ");
}

/// The errors of the ranks in `of`, each of which `body` ends with.
fn errors(ranks: u32, of: &[u32], body: impl Fn(&Communicator) -> Outcome + Sync) -> Vec<Error> {
    let config = Config { timeout: Duration::from_secs(10), ..config() };
    let outcomes = on_ranks(ranks, &config, body);
    of.iter().map(|rank| outcomes[*rank as usize].clone().unwrap_err()).collect()
}

/// Errors of start-up, where ranks have these settings.
fn start(ranks: &[(u32, Config)]) -> Vec<Error> {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        let join = |(rank, config): &(u32, Config)| {
            let (store, rank, config) = (&store, *rank, config.clone());
            scope.spawn(move || Communicator::new(store, "world.0", rank, 2, &config).err())
        };
        let threads: Vec<_> = ranks.iter().map(join).collect();
        threads.into_iter().filter_map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn settings_and_arguments() {
    let page = Page::open();
    page.quotes(Config { buffer_bytes: Some(1), ..config() }.check().unwrap_err());
    page.quotes(&errors(1, &[0], |c| c.all_gather(&[1.0f32; 3], &mut [0.0f32; 4]))[0]);
    page.quotes(&errors(2, &[0], |c| c.broadcast(&mut [1.0f32], 2))[0]);
    page.quotes("fancy".parse::<stepccl::Algorithm>().unwrap_err());
    let topology = Topology::uniform(4, 1).unwrap();
    let tree = Plan::new(stepccl::Collective::AllToAll, &topology, stepccl::Algorithm::Tree);
    page.quotes(tree.unwrap_err());
    page.quotes(Secret::from_text("short").unwrap_err());
    page.quotes(Secret::from_file("/etc/stepccl/secret".as_ref()).unwrap_err());
}

#[test]
fn start_up() {
    let page = Page::open();
    let patient = || Config { start_timeout: Duration::from_secs(10), ..config() };
    page.quotes(&start(&[(0, Config { start_timeout: SHORT, ..config() })])[0]);
    for error in start(&[(0, patient()), (1, Config { pipeline_depth: Some(2), ..patient() })]) {
        page.quotes(error);
    }
    for error in
        start(&[(0, Config { start_timeout: SHORT, ..config() }), (2, patient())]).iter().skip(1)
    {
        page.quotes(error);
    }
    let secret = |text: &str| Config { secret: Some(text.to_owned()), ..patient() };
    for error in start(&[(0, secret("0123456789abcdef")), (1, secret("0123456789abcdeF"))]) {
        page.quotes(error);
    }
    page.quotes(TcpStore::connect("127.0.0.1:1", None, SHORT).unwrap_err());
    page.quotes(FileStore::open("/proc/store".as_ref()).unwrap_err());
}

#[test]
fn a_rank_taken_twice() {
    let page = Page::open();
    let store = MemoryStore::new();
    let short = Config { start_timeout: Duration::from_secs(1), ..config() };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| Communicator::new(&store, "world.0", 1, 2, &short).err());
        sleep(SHORT);
        page.quotes(Communicator::new(&store, "world.0", 1, 2, &short).unwrap_err());
        first.join().unwrap();
    });
}

#[test]
fn time_is_over() {
    let page = Page::open();
    let limited = Config { timeout: SHORT, ..config() };
    on_ranks(2, &limited, |comm| {
        if comm.rank() == 1 {
            sleep(SHORT * 3);
            return;
        }
        page.quotes(comm.all_reduce_in_place(&mut [1.0f32; 2], ReduceOp::Sum).unwrap_err());
        page.quotes(comm.barrier().unwrap_err());
    });
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 1 {
            sleep(SHORT * 3);
            comm.send(&[1u8; 8], 0).unwrap();
            return;
        }
        let mut data = vec![0u8; 8];
        let message = Message { peer: 1, tag: 0, memory: data.as_mut_ptr(), bytes: 8 };
        // SAFETY:
        // - `data` lives until the second wait has returned.
        let work = unsafe { comm.start(Request::Recv(message), None, Keep::default()) }.unwrap();
        page.quotes(work.wait(Some(SHORT)).unwrap_err());
        work.wait(None).unwrap();
    });
}

#[test]
fn ranks_that_leave() {
    let page = Page::open();
    page.quotes(&errors(2, &[0], |c| if c.rank() == 0 { c.barrier() } else { Ok(()) })[0]);
    let aborted = |c: &Communicator| {
        if c.rank() == 0 {
            sleep(SHORT);
            c.abort("the user pressed a key");
        }
        c.barrier()
    };
    let waiting = |c: &Communicator| {
        if c.rank() == 1 {
            sleep(SHORT * 2);
            return Ok(());
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(SHORT);
                c.abort("the user pressed a key");
            });
            // Nobody sends.
            c.recv(&mut [0u8; 8], 1)
        })
    };
    page.quotes(&errors(2, &[0], waiting)[0]);
    for error in errors(2, &[0, 1], aborted) {
        page.quotes(error);
    }
}

#[test]
fn ranks_that_differ() {
    let page = Page::open();
    let differ = |c: &Communicator| {
        let mut data = vec![1.0f32; 6 + c.rank() as usize];
        c.all_reduce_in_place(&mut data, ReduceOp::Sum)
    };
    for error in errors(2, &[0, 1], differ) {
        page.quotes(error);
    }
    let message = |c: &Communicator| match c.rank() {
        0 => c.recv(&mut [0.0f32; 4], 1),
        _ => c.send(&[1.0f32; 8], 0),
    };
    page.quotes(&errors(2, &[0], message)[0]);
}
