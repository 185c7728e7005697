//! Functions whose value is another one each time. What is random in them comes in as an argument.

use super::Function;
use super::strings::plain;
use crate::{DateTime, EvalContext, SqlError, Value, expr::to_integer};
use alloc::{format, string::ToString, vec::Vec};
use sha2::{Digest, Sha256};

/// What both numbers of a generator are below, and by what its numbers are divided.
const BOUND: u32 = 0x3FFF_FFFF;
/// The most bytes of RANDOM_BYTES.
const BYTES_MAX: i128 = 1_024;

/// MySQL's generator: the series of a seed is the same everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generator {
    a: u32,
    b: u32,
}

impl Generator {
    fn new(a: u32, b: u32) -> Self {
        Self { a: a % BOUND, b: b % BOUND }
    }

    fn of_seed(seed: u32) -> Self {
        let a = seed.wrapping_mul(0x1_0001).wrapping_add(55_555_555);
        Self::new(a, seed.wrapping_mul(0x1000_0001))
    }

    fn next(&mut self) -> f64 {
        let bound = u64::from(BOUND);
        let a = (u64::from(self.a) * 3 + u64::from(self.b)) % bound;
        let b = (a + u64::from(self.b) + 33) % bound;
        (self.a, self.b) = (a as u32, b as u32);
        f64::from(self.a) / f64::from(BOUND)
    }
}

pub(super) fn call(
    function: Function,
    args: &[Value],
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    match (function, args) {
        (Function::Rand, [place, seed]) => {
            // NULL counts as 0; of larger numbers, the lower half counts.
            let seed = if seed.is_null() { 0 } else { to_integer(seed, ctx)? };
            next(place, Generator::of_seed(seed as u32), ctx)
        }
        (Function::Random, [place, random]) => {
            let bytes = stream(random, number_of(place), 0);
            let half = |at: usize| u32::from_le_bytes(part(&bytes, at));
            next(place, Generator::new(half(0), half(4)), ctx)
        }
        (Function::Uuid, [place, random, now]) => {
            let number = made(ctx)?;
            Ok(uuid(&stream(random, number_of(place), 0), now, number))
        }
        (Function::RandomBytes, [count, place, random]) => {
            random_bytes(count, (random, number_of(place)), ctx)
        }
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

fn number_of(place: &Value) -> u64 {
    if let Value::Int(place) = place { *place as u64 } else { 0 }
}

/// The next number of the series that belongs to a place of the statement.
fn next(place: &Value, begin: Generator, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let mut anew = begin;
    let local = ctx.local()?;
    let generator = match place {
        Value::Int(place) => local.random.entry(*place).or_insert(begin),
        _ => &mut anew,
    };
    Ok(Value::Double(generator.next()))
}

fn made(ctx: &mut EvalContext) -> Result<u64, SqlError> {
    let local = ctx.local()?;
    local.made += 1;
    Ok(local.made)
}

/// Bytes that nobody can guess who does not know the random ones.
fn stream(random: &Value, place: u64, number: u64) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(random.as_bytes().unwrap_or_default());
    hash.update(place.to_le_bytes());
    hash.update(number.to_le_bytes());
    hash.finalize().into()
}

fn part<const N: usize>(bytes: &[u8; 32], at: usize) -> [u8; N] {
    let found = bytes.get(at..at + N).and_then(|part| part.try_into().ok());
    found.unwrap_or([0; N])
}

/// Steps of 100 ns from the beginning of the calendar of UUIDs, in 1582, to 1970.
const CALENDAR_STEPS: i64 = 122_192_928_000_000_000;

/// Version 1: a moment, a random sequence and a random node. Several of one statement have moments of their own.
fn uuid(bytes: &[u8; 32], now: &Value, number: u64) -> Value {
    let micros = match now {
        Value::DateTime(moment) => DateTime::to_unix_micros(*moment).unwrap_or(0),
        _ => 0,
    };
    let steps = (micros * 10 + CALENDAR_STEPS) as u64 + number;
    let sequence = u16::from_be_bytes(part(bytes, 8)) & 0x3FFF | 0x8000;
    let mut node: [u8; 6] = part(bytes, 10);
    // No network card has an address with this bit.
    node[0] |= 1;
    let node: u64 = node.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let (low, middle, high) =
        (steps & 0xFFFF_FFFF, steps >> 32 & 0xFFFF, steps >> 48 & 0x0FFF | 0x1000);
    plain(format!("{low:08x}-{middle:04x}-{high:04x}-{sequence:04x}-{node:012x}"))
}

fn random_bytes(
    count: &Value,
    (random, place): (&Value, u64),
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    if count.is_null() {
        return Ok(Value::Null);
    }
    let wanted = to_integer(count, ctx)?;
    if !(1..=BYTES_MAX).contains(&wanted) {
        let text = "length value is out of range in 'random_bytes'".to_string();
        return Err(SqlError::new(1690, *b"22003", text));
    }
    let wanted = wanted as usize;
    let mut bytes = Vec::with_capacity(wanted + 32);
    while bytes.len() < wanted {
        let number = made(ctx)?;
        bytes.extend(stream(random, place, number));
    }
    bytes.truncate(wanted);
    Ok(Value::Bytes(bytes))
}
