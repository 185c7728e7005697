//! Calls of functions: aggregates, those that take their value from the session, and the rest.

use super::collations::Strength;
use super::scope::{Aggregates, AliasUse};
use super::{Binder, lazy};
use crate::error;
use crate::expr::External;
use lats_engine::ir::{Call, ColumnId};
use lats_mysql_syntax::Keyword as K;
use lats_mysql_syntax::tree::{self, ExprId, List, Over, SideId};
use lats_values::aggregate::AggregateSpec;
use lats_values::{
    AggregateKind, Collation, ColumnType, Expr, Function, Look, SqlError, TypeKind, Value,
};

impl Binder<'_> {
    /// A function whose name is no keyword.
    pub(super) fn named_call(
        &mut self,
        id: ExprId,
        (schema, name): (tree::Text, tree::Text),
        arguments: List,
    ) -> Result<Expr, SqlError> {
        let shown = self.name(name)?;
        if schema.is_some() {
            let schema = self.name(schema)?;
            let text = format!("FUNCTION {schema}.{shown} does not exist");
            return Err(error::make(1305, "42000", &text));
        }
        let name = shown.to_ascii_uppercase();
        if self.context.parsed.named_arguments.contains(&id) {
            return Err(named_arguments(shown, &name));
        }
        let arguments = self.tree().list(arguments);
        if name == "ANY_VALUE" {
            let [arg] = arguments else { return Err(error::wrong_argument_count("ANY_VALUE")) };
            return self.any_value(*arg);
        }
        if let Some(call) = self.volatile_call(id, &name, arguments)? {
            return Ok(call);
        }
        self.call_by_name(&name, arguments)
    }

    /// A function whose name is a keyword.
    pub(super) fn keyword_call(&mut self, name: K, arguments: List) -> Result<Expr, SqlError> {
        let arguments = self.tree().list(arguments);
        self.call_by_name(name.name(), arguments)
    }

    pub(super) fn call_by_name(&mut self, name: &str, args: &[ExprId]) -> Result<Expr, SqlError> {
        if let Some(found) = self.session_function(name, args)? {
            return Ok(found);
        }
        let mut bound = Vec::with_capacity(args.len());
        let Some(function) = Function::from_name(name) else { return Err(unknown(name)) };
        let guards = self.guards();
        for arg in args {
            bound.push(self.bind(*arg)?);
            if function == Function::If {
                self.unguard(guards);
            }
            self.guard_argument(function, &bound);
        }
        self.unguard(guards);
        self.call(function, name, bound)
    }

    /// Functions that do not look at all of their arguments: what the next one is needed for.
    fn guard_argument(&mut self, function: Function, bound: &[Expr]) {
        let (Some(first), Some(last)) = (bound.first(), bound.last()) else { return };
        match (function, bound.len()) {
            (Function::If, 1) => self.guard(|| super::hex_beside(first.clone(), true)),
            (Function::If, 2) => {
                self.guard(|| lazy::not_true(super::hex_beside(first.clone(), true)));
            }
            (Function::IfNull | Function::Coalesce, _) => {
                self.guard(|| lazy::is_null(last.clone(), false));
            }
            (Function::NullIf, 1) => self.guard(|| lazy::is_null(first.clone(), true)),
            _ => {}
        }
    }

    /// A function whose value is another one each time; it gets what is random, and where in the statement it stands.
    fn volatile_call(
        &mut self,
        id: ExprId,
        name: &str,
        args: &[ExprId],
    ) -> Result<Option<Expr>, SqlError> {
        let place = Expr::Literal(Value::Int(self.place_base + i64::from(id.0)));
        let (function, args) = match (name, args) {
            ("RAND", []) => (Function::Random, vec![place, self.external(External::Random)]),
            ("RAND", [seed]) => {
                let seed = self.bind(*seed)?;
                // A seed of the row's own begins a series of the row's own.
                let is_fixed = crate::expr::is_constant(&seed);
                let place = if is_fixed { place } else { Expr::Literal(Value::Null) };
                (Function::Rand, vec![place, seed])
            }
            ("UUID", []) => {
                let random = self.external(External::Random);
                (Function::Uuid, vec![place, random, self.external(External::Now(6))])
            }
            ("RANDOM_BYTES", [count]) => {
                let count = self.bind(*count)?;
                (Function::RandomBytes, vec![count, place, self.external(External::Random)])
            }
            ("RAND" | "UUID" | "RANDOM_BYTES", _) => return Err(error::wrong_argument_count(name)),
            _ => return Ok(None),
        };
        Ok(Some(Expr::Call { function, args }))
    }

    /// Outside of groups ANY_VALUE is the value; with groups it is that of the first row.
    fn any_value(&mut self, arg: ExprId) -> Result<Expr, SqlError> {
        let bound = self.bind(arg)?;
        if self.block().aggregates != Aggregates::Allowed {
            return Ok(bound);
        }
        let column_type = self.type_of(&bound);
        let spec = AggregateSpec::new(AggregateKind::AnyValue, vec![column_type.clone()]);
        Ok(self.add_call(spec, vec![bound], column_type))
    }

    /// Aggregate functions, with OVER or without, and window functions.
    pub(super) fn aggregate_or_window(
        &mut self,
        id: ExprId,
        call: SideId,
    ) -> Result<Expr, SqlError> {
        let call = self.tree().aggregate(call);
        if call.over != Over::None {
            return self.window_function(call);
        }
        let Some(kind) = aggregate_kind(call.name) else {
            return Err(match call.name {
                K::JSON_ARRAYAGG | K::JSON_OBJECTAGG | K::ST_COLLECT => {
                    error::not_supported(&format!("function {}", call.name.name()))
                }
                _ => error::syntax("near the end: a window function needs OVER"),
            });
        };
        let _ = id;
        self.aggregate_call(kind, call)
    }

    fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        call: &tree::Aggregate,
    ) -> Result<Expr, SqlError> {
        // Within an aggregate function the names of the select list are not known, and no other aggregate function may stand,
        // unless it belongs to an outer query. It is computed for all rows, whatever its result is for.
        let block = self.block();
        let before = std::mem::replace(&mut block.aggregates, Aggregates::Inside);
        let guards = std::mem::take(&mut block.guards);
        let had = block.below.len();
        let bound = self.aggregate_arguments(kind, call);
        let block = self.block();
        (block.aggregates, block.guards) = (before, guards);
        let (spec, args) = bound?;
        let column_type = spec.result_type();
        let at = self.aggregating_block(&args)?;
        if at + 1 < self.blocks.len() {
            // Subqueries in its arguments go where it goes.
            let had = had.min(self.block().below.len());
            let moved = self.block().below.split_off(had);
            self.blocks[at].below.extend(moved);
        }
        Ok(self.add_call_in(at, spec, args, column_type))
    }

    /// The function with its clauses, and what it aggregates.
    pub(super) fn aggregate_arguments(
        &mut self,
        kind: AggregateKind,
        call: &tree::Aggregate,
    ) -> Result<(AggregateSpec, Vec<Expr>), SqlError> {
        let list = self.tree().list(call.arguments);
        if let [only] = list
            && matches!(self.tree().expr(*only), tree::Expr::Star { .. })
        {
            return Ok((AggregateSpec::new(AggregateKind::CountStar, Vec::new()), Vec::new()));
        }
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            let arg = self.bind(*arg)?;
            let numeric = matches!(kind, AggregateKind::Sum | AggregateKind::Avg);
            args.push(super::hex_beside(arg, numeric));
        }
        let types = args.iter().map(|arg| self.type_of(arg)).collect();
        let mut spec = AggregateSpec::new(kind, types);
        spec.distinct = call.is_distinct;
        if kind == AggregateKind::GroupConcat {
            spec.max_bytes = self.context.group_concat_bytes;
            if call.separator.is_some() {
                spec.separator = self.name(call.separator)?.to_owned();
            }
            for item in &call.order {
                // A number names an argument.
                let place = match super::literal(self.tree(), item.value)? {
                    Some(Value::Int(number)) if number >= 0 => {
                        let place = usize::try_from(number - 1).ok().filter(|at| *at < list.len());
                        let unknown = || error::unknown_column(&number.to_string(), "order clause");
                        place.ok_or_else(unknown)?
                    }
                    _ => {
                        args.push(self.bind(item.value)?);
                        args.len() - 1
                    }
                };
                spec.order.push((place, item.direction == tree::Direction::Descending));
            }
        }
        Ok((spec, args))
    }

    /// The block whose groups an aggregate function is about: that of the innermost column in it; if it may not stand there, the
    /// outermost one within that where it may.
    ///
    /// # Errors
    /// 1111.
    fn aggregating_block(&self, args: &[Expr]) -> Result<usize, SqlError> {
        let last = self.blocks.len().saturating_sub(1);
        let allowed = |at: usize| self.blocks[at].aggregates == Aggregates::Allowed;
        let innermost = args.iter().filter_map(|arg| self.innermost(arg)).max();
        let is_inside = |at: usize| self.blocks[at].aggregates == Aggregates::Inside;
        let found = match innermost {
            Some(at) if at == last => Some(at).filter(|at| allowed(*at)),
            // An aggregate function within one of the same query.
            Some(at) if is_inside(at) => None,
            None if allowed(last) => Some(last),
            other => {
                let outer = (other.unwrap_or(0)..last).find(|at| allowed(*at));
                outer.or(Some(last).filter(|at| allowed(*at)))
            }
        };
        found.ok_or_else(|| error::make(1111, "HY000", "Invalid use of group function"))
    }

    /// The innermost block of which the expression, or a subquery in it, names a column.
    fn innermost(&self, expr: &Expr) -> Option<usize> {
        let mut found = None;
        let mut left: Vec<ColumnId> = lats_engine::ir::walk::columns_of(expr).into_iter().collect();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(column) = left.pop() {
            if !seen.insert(column) {
                continue;
            }
            let pending = self.blocks.iter().flat_map(|block| &block.below);
            if let Some(pending) = pending.into_iter().find(|p| p.columns().contains(&column)) {
                left.extend(pending.needs());
                continue;
            }
            let Some(known) = self.columns.get(column.0 as usize) else { continue };
            found = found.max(self.blocks.iter().position(|block| block.number == known.block));
        }
        found
    }

    fn add_call(&mut self, spec: AggregateSpec, args: Vec<Expr>, of: ColumnType) -> Expr {
        let last = self.blocks.len().saturating_sub(1);
        self.add_call_in(last, spec, args, of)
    }

    fn add_call_in(
        &mut self,
        at: usize,
        spec: AggregateSpec,
        args: Vec<Expr>,
        column_type: ColumnType,
    ) -> Expr {
        let same = |call: &&Call| call.spec == spec && call.args == args;
        if let Some(known) = self.blocks[at].calls.iter().find(same) {
            return known.column.scalar();
        }
        let block = self.blocks[at].number;
        let look = self.look_of_call(&spec, &args);
        let keeps = matches!(
            spec.kind,
            lats_values::AggregateKind::Min
                | lats_values::AggregateKind::Max
                | lats_values::AggregateKind::AnyValue
        );
        let strength = match args.first() {
            Some(arg) if keeps => self.strength_of(arg),
            _ => Strength::Coercible,
        };
        let column = self.column("", column_type, None);
        if let Some(made) = self.columns.get_mut(column.0 as usize) {
            (made.block, made.look, made.strength) = (block, look, strength);
        }
        self.call_columns.insert(column);
        self.blocks[at].calls.push(Call { column, spec, args });
        if at + 1 < self.blocks.len() {
            for inner in &mut self.blocks[at + 1..] {
                inner.is_correlated = true;
            }
        }
        column.scalar()
    }

    /// How values of an aggregate function are shown.
    fn look_of_call(&self, spec: &AggregateSpec, args: &[Expr]) -> Look {
        use lats_values::AggregateKind as A;
        let of_arg = args.first().map(|arg| self.look_of(arg)).unwrap_or_default();
        let plain = Look { is_expression: true, ..Look::default() };
        match spec.kind {
            A::Count | A::CountStar | A::BitAnd | A::BitOr | A::BitXor => {
                Look { width: Some(21), ..plain }
            }
            A::Min | A::Max => Look { declared: None, ..of_arg },
            A::AnyValue => of_arg,
            A::Sum => Look { decimals: of_arg.decimals, ..plain },
            A::Avg => {
                Look { decimals: of_arg.decimals.map(|digits| (digits + 4).min(30)), ..plain }
            }
            _ => plain,
        }
    }

    /// Functions whose value is the same for the whole statement.
    fn session_function(&mut self, name: &str, args: &[ExprId]) -> Result<Option<Expr>, SqlError> {
        let external = match (name, args) {
            (
                "NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "UTC_TIMESTAMP"
                | "SYSDATE",
                _,
            ) => External::Now(self.precision(name, args)?),
            ("CURDATE" | "CURRENT_DATE" | "UTC_DATE", []) => External::CurrentDate,
            ("CURTIME" | "CURRENT_TIME" | "UTC_TIME", _) => {
                External::CurrentTime(self.precision(name, args)?)
            }
            ("UNIX_TIMESTAMP", []) => External::UnixTime,
            ("LAST_INSERT_ID", []) => External::LastInsertId,
            ("LAST_INSERT_ID", _) => return Err(error::not_supported("LAST_INSERT_ID(expr)")),
            ("ROW_COUNT", []) => External::RowCount,
            ("FOUND_ROWS", []) => External::FoundRows,
            ("CONNECTION_ID", []) => External::ConnectionId,
            ("DATABASE" | "SCHEMA", []) => External::Database,
            ("USER" | "CURRENT_USER" | "SESSION_USER" | "SYSTEM_USER", []) => External::User,
            ("VERSION", []) => {
                External::SystemVariable { global: true, name: "version".to_owned() }
            }
            ("SLEEP" | "UUID_SHORT" | "GET_LOCK", _) => {
                return Err(error::not_supported(&format!("function {name}")));
            }
            _ => return Ok(None),
        };
        Ok(Some(self.external(external)))
    }

    fn precision(&self, name: &str, args: &[ExprId]) -> Result<u8, SqlError> {
        match args {
            [] => Ok(0),
            [digits] => match super::literal(self.tree(), *digits)? {
                Some(Value::Int(digits @ 0..=6)) => Ok(u8::try_from(digits).unwrap_or(6)),
                _ => Err(error::make(
                    1426,
                    "42000",
                    &format!("Too-big precision specified for '{name}'. Maximum is 6."),
                )),
            },
            _ => Err(error::wrong_argument_count(name)),
        }
    }

    /// `VALUES(column)` in an upsert: the new row's.
    pub(super) fn values_call(&mut self, column: ExprId) -> Result<Expr, SqlError> {
        let Some(base) = self.values_base else {
            // Elsewhere it is NULL, as in MySQL.
            self.bind(column)?;
            return Ok(Expr::Literal(Value::Null));
        };
        // It is a column of the table that is written, whatever else is known.
        let own = self.target_scope.clone();
        let block = self.block();
        let before = std::mem::replace(&mut block.alias_use, AliasUse::No);
        let scope = std::mem::replace(&mut block.scope, own);
        let bound = self.bind(column);
        let block = self.block();
        (block.alias_use, block.scope) = (before, scope);
        match bound? {
            Expr::Column(number) if number < base => Ok(ColumnId(base + number).scalar()),
            other => Ok(other),
        }
    }

    /// A call, once its argument count has been checked.
    pub(super) fn call(
        &mut self,
        function: Function,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        let (fewest, most) = function.arity();
        if !(fewest..=most).contains(&args.len()) {
            return Err(error::wrong_argument_count(name));
        }
        let numeric = takes_numbers(function);
        let args = args.into_iter().map(|arg| super::hex_beside(arg, numeric));
        let mut args: Vec<Expr> = args.collect();
        if function == Function::Mod
            && let Some(divisor) = args.pop()
        {
            args.push(self.divisor(divisor));
        }
        self.arguments_of_connection(function, &mut args)?;
        // It leaves out NULL, and has the collation of the columns among its arguments all the same.
        if function == Function::ConcatWs
            && let Some(collation) = self.of_results(args.iter())
        {
            args = args.into_iter().map(|arg| self.in_collation(arg, collation)).collect();
        }
        Ok(self.as_one_type(Expr::Call { function, args }))
    }

    /// IFNULL and COALESCE give decimals with the digits of their type, also as texts; of decimals that are computed, the digits
    /// that are not shown must stay.
    fn as_decimals(&self, args: Vec<Expr>, to: &ColumnType) -> Vec<Expr> {
        let changes = |arg: &Expr| match arg {
            Expr::Literal(value) => !value.is_null(),
            Expr::Column(number) if *number >= crate::expr::EXTERNAL_BASE => false,
            other => self.type_of(other).kind.is_integer(),
        };
        let to = ColumnType { nullable: true, ..to.clone() };
        let change = |arg: Expr| match changes(&arg) {
            true => Expr::Cast { arg: Box::new(arg), to: to.clone() },
            false => arg,
        };
        args.into_iter().map(change).collect()
    }

    /// A text that is one of several results: what it is compared with is compared in the collation of all of them. A constant has
    /// that of the columns beside it.
    fn in_collation(&self, expr: Expr, collation: Collation) -> Expr {
        match expr {
            Expr::Literal(Value::Text(text, _)) => Expr::Literal(Value::Text(text, collation)),
            Expr::Collate { .. } => expr,
            _ => {
                let own = self.type_of(&expr);
                let is_other = own.collation != collation && own.collation != Collation::Binary;
                match is_other {
                    true => super::collations::converted(expr, collation),
                    false => expr,
                }
            }
        }
    }

    /// IF, IFNULL, COALESCE and CASE with a text among their results give texts only, and bytes only with bytes among them: what is
    /// compared with them is compared with texts or bytes, whichever result it is.
    pub(super) fn as_one_type(&self, expr: Expr) -> Expr {
        let of = |e: &Expr| self.type_of(e);
        let chooses = match &expr {
            Expr::Call { function, .. } => {
                use Function::{Coalesce, Elt, If, IfNull};
                matches!(function, If | IfNull | Coalesce | Elt)
            }
            other => matches!(other, Expr::Case { .. }),
        };
        let ColumnType { kind, collation, .. } = of(&expr);
        if let (TypeKind::Decimal { .. }, Expr::Call { function, args }) = (kind, &expr)
            && matches!(function, Function::IfNull | Function::Coalesce)
        {
            let (function, args) = (*function, args.clone());
            return Expr::Call { function, args: self.as_decimals(args, &of(&expr)) };
        }
        if !chooses || !(kind.is_text() || kind.is_bytes()) {
            return expr;
        }
        let collation = self.of_results(super::collations::results_of(&expr)).unwrap_or(collation);
        // NULL and parameters have no type yet.
        let has_no_type = |e: &Expr| match e {
            Expr::Literal(value) => value.is_null(),
            Expr::Column(number) => *number >= crate::expr::EXTERNAL_BASE,
            _ => false,
        };
        let as_text = |e: Expr| match of(&e).kind {
            other if kind.is_bytes() && other.is_text() && !has_no_type(&e) => {
                Expr::Cast { arg: Box::new(e), to: ColumnType::new(TypeKind::LongBlob) }
            }
            other if kind.is_bytes() || other.is_bytes() => e,
            other if other.is_text() => self.in_collation(e, collation),
            _ => {
                let to = ColumnType::new(TypeKind::LongText).collated(collation);
                Expr::Cast { arg: Box::new(e), to }
            }
        };
        match expr {
            Expr::Call { function: function @ (Function::If | Function::Elt), args } => {
                let results = args.into_iter().zip(0..);
                let args = results.map(|(e, at)| if at == 0 { e } else { as_text(e) }).collect();
                Expr::Call { function, args }
            }
            Expr::Call { function, args } => {
                Expr::Call { function, args: args.into_iter().map(as_text).collect() }
            }
            Expr::Case { operand, branches, otherwise } => Expr::Case {
                operand,
                branches: branches.into_iter().map(|(when, then)| (when, as_text(then))).collect(),
                otherwise: otherwise.map(|e| Box::new(as_text(*e))),
            },
            other => other,
        }
    }
}

/// Functions for which a hexadecimal literal is a number.
fn takes_numbers(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Abs
            | F::Bin
            | F::Oct
            | F::Ceil
            | F::Floor
            | F::Round
            | F::Truncate
            | F::Mod
            | F::Sign
            | F::Pow
            | F::Sqrt
            | F::Exp
            | F::Ln
            | F::Log
            | F::Log2
            | F::Log10
            | F::Sin
            | F::Cos
            | F::Tan
            | F::Asin
            | F::Acos
            | F::Atan
            | F::Degrees
            | F::Radians
    )
}

/// The aggregate function with this name.
pub(super) fn aggregate_kind(name: K) -> Option<AggregateKind> {
    Some(match name {
        K::COUNT => AggregateKind::Count,
        K::SUM => AggregateKind::Sum,
        K::MIN => AggregateKind::Min,
        K::MAX => AggregateKind::Max,
        K::AVG => AggregateKind::Avg,
        K::STD | K::STDDEV | K::STDDEV_POP => AggregateKind::StdPop,
        K::STDDEV_SAMP => AggregateKind::StdSamp,
        K::VAR_POP | K::VARIANCE => AggregateKind::VarPop,
        K::VAR_SAMP => AggregateKind::VarSamp,
        K::BIT_AND => AggregateKind::BitAnd,
        K::BIT_OR => AggregateKind::BitOr,
        K::BIT_XOR => AggregateKind::BitXor,
        K::GROUP_CONCAT => AggregateKind::GroupConcat,
        _ => return None,
    })
}

/// MySQL's functions that we do not have yet; ascending.
const NOT_YET: &[&str] = &[
    "ADDDATE",
    "ADDTIME",
    "ANY_VALUE",
    "BENCHMARK",
    "BIN_TO_UUID",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CHARSET",
    "COERCIBILITY",
    "COLLATION",
    "CONVERT_TZ",
    "CUME_DIST",
    "DEFAULT",
    "DENSE_RANK",
    "EXPORT_SET",
    "EXTRACTVALUE",
    "FIRST_VALUE",
    "FORMAT_BYTES",
    "FROM_BASE64",
    "GET_FORMAT",
    "GROUPING",
    "GROUP_CONCAT",
    "INET6_ATON",
    "INET6_NTOA",
    "INET_ATON",
    "INET_NTOA",
    "INTERVAL",
    "IS_FREE_LOCK",
    "IS_IPV4",
    "IS_IPV6",
    "IS_USED_LOCK",
    "IS_UUID",
    "JSON_ARRAY",
    "JSON_ARRAYAGG",
    "JSON_CONTAINS",
    "JSON_EXTRACT",
    "JSON_KEYS",
    "JSON_LENGTH",
    "JSON_MERGE",
    "JSON_OBJECT",
    "JSON_OBJECTAGG",
    "JSON_QUOTE",
    "JSON_REMOVE",
    "JSON_REPLACE",
    "JSON_SEARCH",
    "JSON_SET",
    "JSON_TYPE",
    "JSON_UNQUOTE",
    "JSON_VALID",
    "JSON_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "LOAD_FILE",
    "MAKETIME",
    "MAKE_SET",
    "MATCH",
    "MD5",
    "NAME_CONST",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "PERIOD_ADD",
    "PERIOD_DIFF",
    "RANK",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_NUMBER",
    "SHA",
    "SHA1",
    "SHA2",
    "SOUNDEX",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "STR_TO_DATE",
    "ST_ASTEXT",
    "ST_GEOMFROMTEXT",
    "SUBDATE",
    "SUBTIME",
    "TIMESTAMPADD",
    "TIMESTAMPDIFF",
    "TIME_FORMAT",
    "TO_BASE64",
    "TO_SECONDS",
    "UPDATEXML",
    "UUID_TO_BIN",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "WEEKOFYEAR",
    "WEIGHT_STRING",
];

/// 1583 or 1584: only loadable functions, of which there are none, may have arguments with names.
fn named_arguments(shown: &str, name: &str) -> SqlError {
    let is_native = Function::from_name(name).is_some() || NOT_YET.binary_search(&name).is_ok();
    let (number, whose) = match is_native {
        true => (1583, format!("native function '{shown}'")),
        false => (1584, format!("stored function `{shown}`")),
    };
    error::make(number, "42000", &format!("Incorrect parameters in the call to {whose}"))
}

/// 1235 for what MySQL has and we do not, 1305 for what nobody has.
fn unknown(name: &str) -> SqlError {
    if NOT_YET.binary_search(&name).is_ok() {
        return error::not_supported(&format!("function {name}"));
    }
    error::unknown_function(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_in_order() {
        assert!(super::NOT_YET.is_sorted());
    }
}
