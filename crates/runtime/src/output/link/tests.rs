//! Two ends whose connections break at any byte.

use super::*;
use lats_base::prng::Prng;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

const LIMIT: usize = 1 << 20;

struct End {
    link: LinkOutput,
    socket: Option<Arc<OwnedFd>>,
    input: Vec<u8>,
    queued: u64,
    got: u64,
}

fn end(node: u16) -> End {
    let link = LinkOutput::new((node, 1), Lane::Data, 1, LIMIT);
    End { link, socket: None, input: Vec::new(), queued: 0, got: 0 }
}

/// A message: its length, its number, and something.
fn message(number: u64, random: &mut Prng) -> Vec<u8> {
    let length =
        if random.chance(1, 20) { random.between(8, 60_000) } else { random.between(8, 300) };
    let mut bytes = (length as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.resize(4 + length as usize, number as u8);
    bytes
}

impl End {
    fn queue(&mut self, random: &mut Prng) {
        let bytes = message(self.queued, random);
        if self.link.queue(&bytes) {
            self.queued += 1;
        }
    }

    /// Reads so much at most, and takes whole messages; what is to be acknowledged.
    fn read(&mut self, most: usize) -> Option<u64> {
        let socket = self.socket.clone()?;
        let mut bytes = vec![0; most];
        let count = rustix::io::read(&*socket, &mut bytes[..]).unwrap_or(0);
        self.input.extend_from_slice(&bytes[..count]);
        let mut used = 0;
        while let Some(length) = self.input[used..].first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some(text) = self.input[used..].get(4..4 + length) else { break };
            assert_eq!(text[..8], self.got.to_le_bytes(), "in order, each once");
            assert!(text[8..].iter().all(|byte| *byte == self.got as u8));
            self.got += 1;
            used += 4 + length;
        }
        self.input.drain(..used);
        self.link.receive(used as u64)
    }

    fn lose(&mut self, name: u64) {
        if let Some(socket) = self.socket.take() {
            let _ = rustix::net::shutdown(&*socket, Shutdown::Both);
        }
        self.link.detach(name);
        self.input.clear();
    }
}

fn connect(a: &mut End, b: &mut End, poll: &Arc<OwnedFd>, name: u64) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (one, other) = pair.unwrap();
    let (one, other) = (Arc::new(one), Arc::new(other));
    rustix::net::sockopt::set_socket_send_buffer_size(&one, 20_000).unwrap();
    rustix::net::sockopt::set_socket_send_buffer_size(&other, 20_000).unwrap();
    let (of_a, of_b) = (a.link.resume(), b.link.resume());
    a.link.attach(&one, (poll, name), of_b.received).unwrap();
    b.link.attach(&other, (poll, name), of_a.received).unwrap();
    (a.socket, b.socket) = (Some(one), Some(other));
}

fn step(ends: &mut [End; 2], random: &mut Prng, name: u64) {
    let which = usize::from(random.chance(1, 2));
    let [a, b] = ends;
    let (this, other) = if which == 0 { (a, b) } else { (b, a) };
    match random.between(0, 9) {
        0..=3 => this.queue(random),
        4..=5 => drop(this.link.flush()),
        6 => drop(this.link.on_room(name)),
        _ => {
            let most = random.between(1, 40_000) as usize;
            if let Some(told) = this.read(most) {
                other.link.acknowledge(told).unwrap();
            }
        }
    }
}

fn run(seed: u64) {
    let mut random = Prng::new(seed);
    let poll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
    let mut ends = [end(1), end(2)];
    let mut name = 0;
    for _ in 0..4_000 {
        if ends[0].socket.is_none() || random.chance(1, 100) {
            ends.iter_mut().for_each(|end| end.lose(name));
            name += 1;
            let [a, b] = &mut ends;
            if random.chance(2, 3) {
                connect(a, b, &poll, name);
            }
        }
        step(&mut ends, &mut random, name);
    }
    ends.iter_mut().for_each(|end| end.lose(name));
    let [a, b] = &mut ends;
    connect(a, b, &poll, name + 1);
    for _ in 0..100_000 {
        let (_, _) = (a.link.on_room(name + 1), b.link.on_room(name + 1));
        a.read(1 << 16).into_iter().for_each(|told| b.link.acknowledge(told).unwrap());
        b.read(1 << 16).into_iter().for_each(|told| a.link.acknowledge(told).unwrap());
        if (a.queued, b.queued) == (b.got, a.got) {
            break;
        }
    }
    assert_eq!((a.queued, b.queued), (b.got, a.got), "all has come");
    assert!(a.queued > 100 && b.queued > 100);
    for end in ends {
        let kept = lock(&end.link.state).kept_bytes as u64;
        assert!(kept < 2 * ACKNOWLEDGED_EVERY, "{kept} bytes are kept for nobody");
    }
}

#[test]
fn nothing_is_lost_or_doubled_when_connections_break() {
    (1..=40).for_each(run);
}

#[test]
fn what_the_other_end_cannot_have_ends_the_link() {
    let poll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
    let (mut a, mut b) = (end(1), end(2));
    connect(&mut a, &mut b, &poll, 1);
    assert!(a.link.queue(&[1; 100]) && a.link.flush() == Flushed::Done);
    assert!(a.link.acknowledge(100).is_ok());
    let socket = a.socket.clone().unwrap();
    assert!(a.link.attach(&socket, (&poll, 2), 99).is_err(), "that is forgotten");
    assert!(a.link.attach(&socket, (&poll, 2), 101).is_err(), "that was never sent");
    assert!(a.link.attach(&socket, (&poll, 2), 100).is_ok());
    assert!(!a.link.queue(&vec![1; LIMIT + 1]), "that is too much");
    a.link.end();
    assert!(a.link.is_over() && a.link.queue(&[1]) && a.link.tells_end() && !a.link.tells_end());
    assert!(a.link.attach(&socket, (&poll, 3), 100).is_err());
    assert!(b.link.acknowledge(1).is_err() && b.link.is_over());
}

#[test]
fn the_other_end_may_have_more_than_the_writer_has_noted() {
    let poll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
    let (mut a, mut b) = (end(1), end(2));
    connect(&mut a, &mut b, &poll, 1);
    assert!(a.link.queue(&[1; 1_000]));
    let mut piece = lock(&a.link.state).begin().unwrap();
    assert!(matches!(write(&mut piece), Written::All), "it is on its way, and nobody knows");
    assert!(a.link.acknowledge(900).is_ok() && !a.link.is_over());
    assert!(a.link.acknowledge(1_001).is_err() && a.link.is_over());
}

#[test]
fn what_was_acknowledged_is_not_kept_for_the_sake_of_the_rest() {
    let poll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
    let (a, mut b) = (end(1), end(2));
    let socket = {
        let mut other = end(3);
        connect(&mut other, &mut b, &poll, 1);
        other.socket.unwrap()
    };
    while a.link.queue(&[1; 9_000]) {}
    let kept = lock(&a.link.state).end();
    assert!(kept > (LIMIT - PART_BYTES) as u64 - 9_000);
    let has = kept - 10_000;
    a.link.attach(&socket, (&poll, 1), has).unwrap();
    assert!(lock(&a.link.state).kept_bytes < PART_BYTES + 9_000);
}
