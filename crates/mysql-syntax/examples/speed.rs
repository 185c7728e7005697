//! How fast an INSERT of one megabyte is parsed: `cargo run --release -p lats-mysql-syntax --example speed [rounds]`.
//! With `--stdin`, parses and prints what comes in, in a thread with so many KiB of stack.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool that measures and prints"
)]

use lats_mysql_syntax::{Mode, parse, print};
use std::io::Read;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|a| a == "--stdin") {
        let kilobytes: usize = arguments.get(1).and_then(|a| a.parse().ok()).unwrap_or(2_048);
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text).expect("a text");
        let run = move || match parse(&text, 0, Mode::default()) {
            Ok(parsed) => println!("{}", String::from_utf8_lossy(&print(&parsed, Mode::default()))),
            Err(error) => println!("{} {}", error.number, error.message),
        };
        let thread = std::thread::Builder::new().stack_size(kilobytes << 10).spawn(run);
        thread.expect("a thread").join().expect("no panic");
        return;
    }
    let rounds: u32 = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(50);
    let row = "(12345, 'some text of a row', 3.14, NULL, -7, '2024-01-01'),\n";
    let mut text = String::from("INSERT INTO orders (a, b, c, d, e, f) VALUES ");
    while text.len() < 1 << 20 {
        text.push_str(row);
    }
    text.truncate(text.len() - 2);
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let parsed = parse(text.as_bytes(), 0, Mode::default()).expect("a good statement");
        best = best.min(start.elapsed().as_secs_f64());
        assert!(parsed.next.is_none());
    }
    let megabytes = text.len() as f64 / 1e6;
    println!("{megabytes:.2} MB in {:.2} ms: {:.0} MB/s", best * 1e3, megabytes / best);
}
