//! Powers and logarithms, to the last digit: their results are shown with all their digits.

/// A number as the sum of two doubles, the second one far smaller: some 106 bits.
#[derive(Clone, Copy)]
struct Pair {
    high: f64,
    low: f64,
}

/// The sum of two doubles, of which the first is not the smaller one.
fn quick_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    Pair { high, low: b - (high - a) }
}

fn sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let part = high - a;
    Pair { high, low: (a - (high - part)) + (b - part) }
}

fn product(a: f64, b: f64) -> Pair {
    let high = a * b;
    Pair { high, low: libm::fma(a, b, -high) }
}

impl Pair {
    fn add(self, other: Self) -> Self {
        let s = sum(self.high, other.high);
        quick_sum(s.high, s.low + self.low + other.low)
    }

    fn mul(self, other: Self) -> Self {
        let p = product(self.high, other.high);
        quick_sum(p.high, p.low + self.high * other.low + self.low * other.high)
    }

    fn divided(self, by: f64) -> Self {
        let high = self.high / by;
        let back = product(high, by);
        quick_sum(high, ((self.high - back.high) - back.low + self.low) / by)
    }
}

/// The logarithm of 2 as a pair.
const LN_2: Pair = Pair { high: core::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
/// The argument is halved so often before the series, and the result squared as often after it.
const HALVINGS: i32 = 8;
/// Terms of the series that reach the last bit of a pair.
const TERMS: i32 = 12;

/// `e` to the power `x`, as a pair and a power of two that it is multiplied with.
fn exp_pair(x: Pair) -> (Pair, i32) {
    let twos = libm::rint(x.high / LN_2.high);
    let rest = x.add(LN_2.mul(Pair { high: -twos, low: 0.0 }));
    let halved = |v: f64| libm::scalbn(v, -HALVINGS);
    let small = Pair { high: halved(rest.high), low: halved(rest.low) };
    let one = Pair { high: 1.0, low: 0.0 };
    let mut series = one;
    for term in (1..=TERMS).rev() {
        series = one.add(series.mul(small).divided(f64::from(term)));
    }
    for _ in 0..HALVINGS {
        series = series.mul(series);
    }
    (series, twos as i32)
}

/// Whether a power of `e` has all the digits of a double.
fn has_digits(exponent: f64) -> bool {
    (-708.0..=709.7).contains(&exponent)
}

/// `e` to the power `x`, rounded once.
pub(super) fn exp(x: f64) -> f64 {
    if !has_digits(x) {
        return libm::exp(x);
    }
    let (value, twos) = exp_pair(Pair { high: x, low: 0.0 });
    libm::scalbn(value.high, twos)
}

/// The logarithm of a number above zero: the usual one, mended by what its power misses the number by.
fn ln_pair(x: f64) -> Pair {
    let (mut part, mut twos) = libm::frexp(x);
    if part < core::f64::consts::FRAC_1_SQRT_2 {
        part *= 2.0;
        twos -= 1;
    }
    let near = libm::log(part);
    let (back, more) = exp_pair(Pair { high: -near, low: 0.0 });
    let product = back.mul(Pair { high: libm::scalbn(part, more), low: 0.0 });
    let missing = product.add(Pair { high: -1.0, low: 0.0 });
    let mended = sum(near, missing.high - missing.high * missing.high / 2.0 + missing.low);
    LN_2.mul(Pair { high: f64::from(twos), low: 0.0 }).add(mended)
}

/// Whether the logarithm can be mended: next to 1 nothing is missing that could be told.
fn is_mended(x: f64) -> bool {
    x.is_finite() && x > 0.0 && libm::fabs(x - 1.0) > 1e-6
}

/// The natural logarithm, rounded once.
pub(super) fn ln(x: f64) -> f64 {
    if is_mended(x) { ln_pair(x).high } else { libm::log(x) }
}

/// `x` to the power `y`, rounded once.
pub(super) fn pow(x: f64, y: f64) -> f64 {
    let size = libm::fabs(x);
    let usual = libm::pow(x, y);
    if !is_mended(size) || !usual.is_finite() || usual == 0.0 || y == 0.0 {
        return usual;
    }
    let exponent = ln_pair(size).mul(Pair { high: y, low: 0.0 });
    if !has_digits(exponent.high) {
        return usual;
    }
    let (value, twos) = exp_pair(exponent);
    libm::copysign(libm::scalbn(value.high, twos), usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_mysql() {
        for (x, expected) in [
            (0.0, 1.0),
            (1.0, core::f64::consts::E),
            (2.0, 7.38905609893065),
            (0.5, 1.6487212707001282),
            (-3.0, 0.049787068367863944),
            (10.0, 22026.465794806718),
            (-1e-300, 1.0),
            (700.0, 1.0142320547350045e304),
            (-700.0, 9.85967654375977e-305),
        ] {
            assert_eq!(exp(x), expected, "{x}");
        }
        for (x, expected) in [
            (2.0, core::f64::consts::LN_2),
            (10.0, core::f64::consts::LN_10),
            (657.6361208907002, 6.488651770595234),
            (1e300, 690.7755278982137),
            (5e-324, -744.4400719213812),
            (1.0, 0.0),
        ] {
            assert_eq!(ln(x), expected, "{x}");
        }
        for (x, y, expected) in [
            (2.0, 10.0, 1024.0),
            (-2.0, 3.0, -8.0),
            (10.0, -2.0, 0.01),
            (2.0, 0.5, core::f64::consts::SQRT_2),
            (156.0933691982751, 3.9178073914476688, 391974512.9053927),
            (0.0, 0.0, 1.0),
            (7.0, 0.0, 1.0),
            (10.0, 308.0, 1e308),
            (10.0, 400.0, f64::INFINITY),
        ] {
            assert_eq!(pow(x, y), expected, "{x} to {y}");
        }
        assert!(pow(-2.0, 0.5).is_nan());
        assert_eq!(exp(800.0), f64::INFINITY);
        assert_eq!(exp(-800.0), 0.0);
    }
}
