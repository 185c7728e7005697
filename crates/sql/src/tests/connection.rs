//! Whole connections: bytes in, bytes out.

use crate::connection::{Options, serve};
use crate::session::Shared;
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
        let (io, theirs) = tokio::io::duplex(1 << 16);
        let shared = Arc::new(Shared::new(Memory::new(), now));
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
