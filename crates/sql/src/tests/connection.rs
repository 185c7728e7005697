//! Whole connections: bytes in, bytes out.

use crate::connection::{Options, serve};
use crate::session::{Meter, Shared};
use crate::testing::{Memory, now};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

const PROTOCOL_41: u32 = 1 << 9;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const CONNECT_WITH_DB: u32 = 1 << 3;

struct Line {
    io: DuplexStream,
}

impl Line {
    async fn open(user: &str, database: &str) -> (Self, Vec<u8>) {
        Self::open_with(Arc::new(Shared::new(Memory::new(), now)), user, database).await
    }

    async fn open_with(shared: Arc<Shared<Memory>>, user: &str, database: &str) -> (Self, Vec<u8>) {
        let (io, theirs) = tokio::io::duplex(1 << 16);
        let options = Options {
            connection_id: 7,
            random: [7; 20],
            secret: [8; 20],
            host: "localhost".into(),
        };
        tokio::spawn(serve(shared, theirs, options, watch::channel(false).1));
        let mut line = Self { io };
        let greeting = line.packet().await.expect("a greeting");
        assert_eq!(greeting[0], 10);
        let bits = PROTOCOL_41 | SECURE_CONNECTION | MULTI_STATEMENTS | CONNECT_WITH_DB;
        let mut login = bits.to_le_bytes().to_vec();
        login.extend_from_slice(&(1u32 << 24).to_le_bytes());
        login.push(255);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(user.as_bytes());
        login.extend_from_slice(&[0, 0]);
        login.extend_from_slice(database.as_bytes());
        login.push(0);
        line.send(1, &login).await;
        let answer = line.packet().await.expect("an answer");
        (line, answer)
    }

    async fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = sequence;
        self.io.write_all(&packet).await.unwrap();
        self.io.write_all(payload).await.unwrap();
    }

    async fn packet(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.io.read_exact(&mut header).await.ok()?;
        header[3] = 0;
        let mut payload = vec![0; u32::from_le_bytes(header) as usize];
        self.io.read_exact(&mut payload).await.ok()?;
        Some(payload)
    }

    async fn command(&mut self, code: u8, body: &[u8]) -> Vec<u8> {
        self.send(0, &[&[code], body].concat()).await;
        self.packet().await.expect("an answer")
    }

    /// Packets up to the second EOF.
    async fn rows(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut ends = 0;
        while ends < 2 {
            let packet = self.packet().await.expect("a packet");
            ends += usize::from(packet[0] == 0xFE && packet.len() < 9);
            packets.push(packet);
        }
        packets
    }
}

#[tokio::test]
async fn text_statements() {
    let (mut line, answer) = Line::open("root", "test").await;
    assert_eq!(answer[0], 0, "{answer:?}");
    assert_eq!(line.command(3, b"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))").await[0], 0);
    let ok = line.command(3, b"INSERT INTO t VALUES (1, 'a'), (2, NULL)").await;
    assert_eq!(&ok[..5], [0, 2, 0, 2, 0]);
    assert_eq!(line.command(3, b"SELECT * FROM t").await, [2]);
    let rows = line.rows().await;
    assert_eq!(rows[3], [1, b'1', 1, b'a']);
    assert_eq!(rows[4], [1, b'2', 0xFB]);
    let err = line.command(3, b"SELECT nope").await;
    assert_eq!(&err[..9], [0xFF, 0x1E, 0x04, b'#', b'4', b'2', b'S', b'2', b'2']);
    // Bytes that are no text are a string of bytes.
    assert_eq!(line.command(3, b"SELECT HEX('\xFF')").await, [1]);
    assert_eq!(line.rows().await[2], [2, b'F', b'F']);
    assert_eq!(line.command(14, b"").await[0], 0);
    assert_eq!(line.command(200, b"").await[0], 0xFF);
    line.send(0, &[1]).await;
    assert!(line.packet().await.is_none());
}

#[tokio::test]
async fn several_statements() {
    let (mut line, _) = Line::open("root", "test").await;
    let first = line.command(3, b"SET @a = 1; SELECT @a; SELECT broken; SELECT 2").await;
    assert_eq!(first, [0, 0, 0, 10, 0, 0, 0], "more results follow");
    assert_eq!(line.packet().await.unwrap(), [1]);
    let rows = line.rows().await;
    assert_eq!(rows[2], [1, b'1']);
    assert_eq!(line.packet().await.unwrap()[0], 0xFF);
    assert_eq!(line.command(14, b"").await[0], 0);
}

#[tokio::test]
async fn prepared_statements() {
    let (mut line, _) = Line::open("root", "test").await;
    line.command(3, b"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))").await;
    line.command(3, b"INSERT INTO t VALUES (5, 'five')").await;
    let prepared = line.command(22, b"SELECT v, id FROM t WHERE id = ?").await;
    assert_eq!(&prepared[..9], [0, 1, 0, 0, 0, 2, 0, 1, 0]);
    line.rows().await;
    let mut body = vec![1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0];
    body.extend_from_slice(&5i64.to_le_bytes());
    assert_eq!(line.command(23, &body).await, [2]);
    let rows = line.rows().await;
    assert_eq!(rows[3], [0, 0, 4, b'f', b'i', b'v', b'e', 5, 0, 0, 0]);
    body[0] = 9;
    assert_eq!(&line.command(23, &body).await[..3], [0xFF, 0xDB, 0x04]);
}

#[tokio::test]
async fn strangers() {
    let (_, answer) = Line::open("mallory", "").await;
    assert_eq!(&answer[..3], [0xFF, 0x15, 0x04]);
    let (_, answer) = Line::open("root", "nowhere").await;
    assert_eq!(&answer[..3], [0xFF, 0x19, 0x04]);
    let (mut line, _) = Line::open("root", "").await;
    line.send(9, b"out of order").await;
    assert_eq!(line.packet().await.unwrap()[0], 0xFF);
    assert!(line.packet().await.is_none());
}

const CURSOR_EXISTS: u8 = 0x40;
const LAST_ROW_SENT: u8 = 0x80;

impl Line {
    /// Prepares a statement that counts to 5; its number.
    async fn prepare_five(&mut self) -> u32 {
        let text = b"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n";
        let prepared = self.command(22, text).await;
        assert_eq!(prepared[0], 0, "{prepared:?}");
        // The one column.
        self.packet().await.expect("a column");
        self.packet().await.expect("an end");
        u32::from_le_bytes(prepared[1..5].try_into().unwrap())
    }

    /// Opens a cursor; the status that is told.
    async fn open_cursor(&mut self, id: u32) -> u8 {
        let body = [&id.to_le_bytes()[..], &[1, 1, 0, 0, 0]].concat();
        assert_eq!(self.command(23, &body).await, [1]);
        self.packet().await.expect("a column");
        let end = self.packet().await.expect("an end");
        assert_eq!(end[0], 0xFE);
        end[3]
    }

    /// Fetches some rows: the last byte of each, which tells them here, and the status.
    async fn fetch(&mut self, id: u32, count: u32) -> (Vec<u8>, u8) {
        self.send(0, &[&[28], &id.to_le_bytes()[..], &count.to_le_bytes()].concat()).await;
        let mut rows = Vec::new();
        loop {
            let packet = self.packet().await.expect("a packet");
            match packet[0] {
                0 => rows.push(packet[2]),
                0xFE => return (rows, packet[3]),
                _ => panic!("{}", String::from_utf8_lossy(&packet)),
            }
        }
    }

    async fn fetch_error(&mut self, id: u32) -> u16 {
        let body = [id.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        let err = self.command(28, &body).await;
        assert_eq!(err[0], 0xFF, "{err:?}");
        u16::from_le_bytes([err[1], err[2]])
    }
}

#[tokio::test]
async fn cursors_keep_rows_until_they_are_fetched() {
    let (mut line, _) = Line::open("root", "test").await;
    let id = line.prepare_five().await;
    assert_eq!(line.fetch_error(id).await, 1421);
    assert_eq!(line.fetch_error(id + 7).await, 1243);
    assert_eq!(line.open_cursor(id).await & CURSOR_EXISTS, CURSOR_EXISTS);
    let (rows, status) = line.fetch(id, 2).await;
    assert_eq!((rows, status & (CURSOR_EXISTS | LAST_ROW_SENT)), (vec![1, 2], CURSOR_EXISTS));
    // Another statement in between.
    assert_eq!(line.command(3, b"SELECT 9").await, [1]);
    line.rows().await;
    let (rows, status) = line.fetch(id, 3).await;
    assert_eq!((rows, status & (CURSOR_EXISTS | LAST_ROW_SENT)), (vec![3, 4, 5], CURSOR_EXISTS));
    let (rows, status) = line.fetch(id, 3).await;
    assert_eq!((rows, status & (CURSOR_EXISTS | LAST_ROW_SENT)), (vec![], LAST_ROW_SENT));
    assert_eq!(line.fetch_error(id).await, 1421);
}

#[tokio::test]
async fn cursors_end_with_a_reset_or_the_next_execution() {
    let (mut line, _) = Line::open("root", "test").await;
    let (one, other) = (line.prepare_five().await, line.prepare_five().await);
    line.open_cursor(one).await;
    line.open_cursor(other).await;
    assert_eq!(line.fetch(one, 4).await.0, [1, 2, 3, 4]);
    // Executed again: from the beginning.
    line.open_cursor(one).await;
    assert_eq!(line.fetch(one, 4).await.0, [1, 2, 3, 4]);
    let reset = line.command(26, &one.to_le_bytes()).await;
    assert_eq!(reset[0], 0);
    assert_eq!(line.fetch_error(one).await, 1421);
    assert_eq!(line.fetch(other, 9).await.0, [1, 2, 3, 4, 5]);
    // What is no query has no cursor, whatever the client asks for.
    let prepared = line.command(22, b"SET @a = 1").await;
    let body = [&prepared[1..5], &[1, 1, 0, 0, 0]].concat();
    assert_eq!(line.command(23, &body).await[0], 0);
    // An error of the statement is its answer.
    let prepared = line.command(22, b"SELECT (SELECT 1 UNION ALL SELECT 2)").await;
    line.packet().await;
    line.packet().await;
    let body = [&prepared[1..5], &[1, 1, 0, 0, 0]].concat();
    let err = line.command(23, &body).await;
    assert_eq!(&err[..3], [0xFF, 0xDA, 0x04]);
}

#[tokio::test]
async fn cursors_have_a_limit_of_memory() {
    let (mut line, _) = Line::open("root", "test").await;
    let text = b"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                 SELECT REPEAT('x', 100000) FROM n a, n b";
    let prepared = line.command(22, text).await;
    line.packet().await;
    line.packet().await;
    let body = [&prepared[1..5], &[1, 1, 0, 0, 0]].concat();
    let err = line.command(23, &body).await;
    assert_eq!(err[0], 0xFF);
    assert_eq!(u16::from_le_bytes([err[1], err[2]]), 1038);
}

/// A line to a node of so many MiB.
async fn line_with_memory(mib: usize) -> (Line, Arc<Shared<Memory>>) {
    let shared = Shared::new(Memory::new(), now).with_memory(mib << 20, Meter::default());
    let shared = Arc::new(shared);
    let (line, answer) = Line::open_with(shared.clone(), "root", "test").await;
    assert_eq!(answer[0], 0, "{answer:?}");
    (line, shared)
}

fn number_of(err: &[u8]) -> u16 {
    assert_eq!(err[0], 0xFF, "{err:?}");
    u16::from_le_bytes([err[1], err[2]])
}

fn bytes_of(shared: &Shared<Memory>, name: &str) -> u64 {
    let figures = shared.memory_figures()();
    figures.iter().find(|figure| figure.name == name).unwrap().bytes
}

#[tokio::test]
async fn a_packet_without_memory_is_refused_and_the_connection_goes_on() {
    let (mut line, shared) = line_with_memory(8).await;
    let text = [&b"SELECT '"[..], &vec![b'x'; 12 << 20], b"'"].concat();
    assert_eq!(number_of(&line.command(3, &text).await), 4081);
    assert_eq!(line.command(14, b"").await[0], 0);
    assert_eq!(line.command(3, b"SELECT LENGTH('abc')").await, [1]);
    assert_eq!(line.rows().await[2], [1, b'3']);
    assert_eq!(bytes_of(&shared, "packets"), 0);
}

#[tokio::test]
async fn parameters_without_memory_are_the_executions_error() {
    let (mut line, shared) = line_with_memory(8).await;
    let prepared = line.command(22, b"SELECT LENGTH(?)").await;
    for _ in 0..4 {
        line.packet().await;
    }
    let id = &prepared[1..5];
    for _ in 0..6 {
        line.send(0, &[&[24], id, &[0, 0], &vec![b'x'; 1 << 20]].concat()).await;
    }
    // A piece that is too large by itself has no answer either.
    line.send(0, &[&[24], id, &[0, 0], &vec![b'x'; 12 << 20]].concat()).await;
    let execute = [id, &[0, 1, 0, 0, 0, 0, 1, 0xFE, 0]].concat();
    assert_eq!(number_of(&line.command(23, &execute).await), 4081);
    assert_eq!(bytes_of(&shared, "long_data"), 0);
    line.send(0, &[&[24], id, &[0, 0], &b"abc"[..]].concat()).await;
    assert_eq!(line.command(23, &execute).await, [1]);
}

#[tokio::test]
async fn variables_and_prepared_statements_have_limits() {
    let (mut line, shared) = line_with_memory(8).await;
    for number in 0..4 {
        let text = format!("SET @v{number} = REPEAT('x', 1000000)");
        assert_eq!(line.command(3, text.as_bytes()).await[0], 0, "{number}");
    }
    assert!(bytes_of(&shared, "user_variables") > 4_000_000);
    let more = line.command(3, b"SET @v4 = REPEAT('x', 2000000)").await;
    assert_eq!(number_of(&more), 4081);
    assert_eq!(line.command(3, b"SET @v0 = NULL, @v1 = NULL").await[0], 0);
    assert_eq!(line.command(3, b"SET @v4 = REPEAT('x', 2000000)").await[0], 0);
    let mut prepared = 0;
    let refused = loop {
        let answer = line.command(22, format!("SET @x = {prepared}").as_bytes()).await;
        match answer[0] {
            0 => prepared += 1,
            _ => break answer,
        }
    };
    assert_eq!(number_of(&refused), 4081);
    assert!((100..2_000).contains(&prepared), "{prepared}");
    drop(line);
}

#[tokio::test]
async fn answers_of_many_statements_wait_for_the_client() {
    const STATEMENTS: usize = 100;
    let (mut line, shared) = line_with_memory(64).await;
    assert_eq!(line.command(3, b"CREATE TABLE t (id INT PRIMARY KEY)").await[0], 0);
    let pair = |id| format!("INSERT INTO t VALUES ({id}); SELECT REPEAT('x', 500000);");
    let text: String = (0..STATEMENTS).map(pair).collect();
    line.send(0, &[&[3], text.as_bytes()].concat()).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // It has not run on ahead of its client.
    let (mut other, _) = Line::open_with(shared, "root", "test").await;
    assert_eq!(other.command(3, b"SELECT COUNT(*) FROM t WHERE id > 5").await, [1]);
    assert_eq!(other.rows().await[2], [1, b'0']);
    for _ in 0..STATEMENTS {
        assert_eq!(line.packet().await.unwrap()[0], 0);
        assert_eq!(line.packet().await.unwrap(), [1]);
        assert!(line.rows().await[2].len() > 500_000);
    }
}

#[tokio::test(start_paused = true)]
async fn who_stops_within_a_packet_is_left() {
    let (mut line, _) = line_with_memory(64).await;
    line.io.write_all(&[100, 0, 0, 0, 3, b'S']).await.unwrap();
    assert_eq!(number_of(&line.packet().await.unwrap()), 1159);
    assert!(line.packet().await.is_none());
    // Between packets a client may rest.
    let (mut line, _) = line_with_memory(64).await;
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    assert_eq!(line.command(14, b"").await[0], 0);
}
