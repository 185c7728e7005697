//! FORMAT: numbers as they are written in a country.

use super::{Outcome, plain};
use crate::expr::{to_decimal, to_integer};
use crate::{EvalContext, SqlError, Value};
use alloc::string::{String, ToString};

/// How numbers are written.
struct Style {
    point: char,
    /// Between groups of digits; without it there are no groups.
    separator: Option<char>,
    /// Digits of the groups but the last one, which has three.
    group: usize,
}

const PLAIN: Style = Style { point: '.', separator: Some(','), group: 3 };
const NONE: Style = Style { point: '.', separator: None, group: 3 };
const COMMA: Style = Style { point: ',', separator: None, group: 3 };
const DOTS: Style = Style { point: ',', separator: Some('.'), group: 3 };
const SPACES: Style = Style { point: ',', separator: Some(' '), group: 3 };
const ZEROS: Style = Style { point: ',', separator: Some('\0'), group: 3 };
const QUOTES: Style = Style { point: '.', separator: Some('\''), group: 3 };
const QUOTES_COMMA: Style = Style { point: ',', separator: Some('\''), group: 3 };
const PAIRS: Style = Style { point: '.', separator: Some(','), group: 2 };

/// MySQL's locales by how they write numbers.
static LOCALES: &[(&Style, &str)] = &[
    (
        &PLAIN,
        "ar_AE ar_BH ar_DZ ar_EG ar_IN ar_IQ ar_JO ar_KW ar_LB ar_LY ar_MA ar_OM ar_QA ar_SD ar_SY ar_TN ar_YE en_AU en_CA en_GB \
         en_NZ en_PH en_US en_ZA en_ZW es_DO es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_SV es_US gu_IN he_IL hi_IN ja_JP ko_KR \
         ms_MY th_TH ur_PK zh_CN zh_HK zh_TW",
    ),
    (&NONE, "ar_SA sr_RS"),
    (
        &DOTS,
        "be_BY da_DK de_BE de_DE de_LU es_AR es_BO es_CL es_CO es_EC es_ES es_PY es_UY es_VE fo_FO hu_HU id_ID is_IS lt_LT mn_MN \
         nb_NO no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN",
    ),
    (&ZEROS, "bg_BG"),
    (
        &COMMA,
        "ca_ES de_AT el_GR eu_ES fr_BE fr_CA fr_CH fr_FR fr_LU gl_ES hr_HR it_IT nl_BE nl_NL pl_PL pt_BR pt_PT sl_SI",
    ),
    (&SPACES, "cs_CZ es_CR et_EE fi_FI lv_LV mk_MK ru_RU sk_SK sv_FI sv_SE"),
    (&QUOTES, "de_CH"),
    (&QUOTES_COMMA, "it_CH rm_CH"),
    (&PAIRS, "en_IN ta_IN te_IN"),
];

/// `FORMAT(number, decimals[, locale])`.
pub(super) fn call(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let [value, places, locale @ ..] = args else {
        return Err(SqlError::wrong_argument_count("FORMAT"));
    };
    if value.is_null() || places.is_null() {
        return Ok(Value::Null);
    }
    let style = locale.first().map_or(&PLAIN, |name| style(name, ctx));
    let places = to_integer(places, ctx)?.clamp(0, 30) as u8;
    let text = to_decimal(value, ctx)?.round(places).to_string();
    Ok(plain(written(&text, style)))
}

fn written(number: &str, style: &Style) -> String {
    let (sign, rest) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        let begins = index > 0 && left >= 3 && (left - 3).is_multiple_of(style.group);
        out.extend(style.separator.filter(|_| begins));
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push(style.point);
        out.push_str(fraction);
    }
    out
}

/// The style of a locale; that of `en_US`, with a warning, for names that MySQL does not know.
fn style(name: &Value, ctx: &mut EvalContext) -> &'static Style {
    let name = if name.is_null() { String::from("NULL") } else { name.to_display() };
    let known = |(_, names): &&(&Style, &str)| {
        names.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(&name))
    };
    if let Some((style, _)) = LOCALES.iter().find(known) {
        return style;
    }
    let text = alloc::format!("Unknown locale: '{name}'");
    ctx.note(SqlError::new(1649, *b"HY000", text));
    &PLAIN
}
