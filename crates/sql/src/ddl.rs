//! CREATE, DROP and TRUNCATE: changes of the catalog.

mod build;
mod columns;

use crate::error::{self, Failure, change_error};
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::table::{check_not_system, find, single_name, split_name};
use lats_base::{IndexId, RefCode, TableId, limits};
use lats_catalog::{Change, ChangeErrorKind, ColumnDef, DefaultValue, IndexDef, TableDef, Unique};
use lats_client::api::StoreError;
use lats_values::{Collation, ColumnType, SqlError, TypeKind};
use sqlparser::ast::{self, ObjectType, SchemaName, Statement, TableConstraint};

/// Indexes other than B-trees do not exist; these names are taken as MySQL's other engines do.
fn is_btree(kind: Option<&ast::IndexType>) -> bool {
    matches!(kind, None | Some(ast::IndexType::BTree | ast::IndexType::Hash))
}

impl<S: Store> Session<S> {
    async fn change(&mut self, change: Change, dropping: bool) -> Result<Outcome, Failure> {
        // DDL commits what is open, as in MySQL.
        self.commit().await?;
        match self.shared.store.change(change).await? {
            Ok(()) => Ok(Done::nothing()),
            // It may have been made all the same: it is not simply done again.
            Err(refused) if refused.kind == ChangeErrorKind::Temporary => {
                let sql = Some(change_error(&refused, dropping));
                Err(StoreError { code: RefCode::NodeSilent, sql }.into())
            }
            Err(refused) => Err(change_error(&refused, dropping).into()),
        }
    }

    pub(crate) async fn create_database(
        &mut self,
        statement: &Statement,
    ) -> Result<Outcome, Failure> {
        let (name, if_not_exists) = match statement {
            Statement::CreateDatabase {
                db_name,
                if_not_exists,
                default_charset,
                default_collation,
                ..
            } => {
                check_database_defaults(default_charset.as_deref(), default_collation.as_deref())?;
                (single_name(db_name)?, *if_not_exists)
            }
            Statement::CreateSchema {
                schema_name: SchemaName::Simple(name),
                if_not_exists,
                with: None,
                options: None,
                default_collate_spec: None,
                clone: None,
            } => (single_name(name)?, *if_not_exists),
            _ => return Err(error::not_supported("this form of CREATE SCHEMA").into()),
        };
        check_name(&name, 1102, "database")?;
        check_not_system(&name)?;
        if if_not_exists && self.shared.store.catalog().has_database(&name) {
            let text = format!("Can't create database '{name}'; database exists");
            self.add_warnings(vec![error::make(1007, "HY000", &text)]);
        }
        self.change(Change::CreateDatabase { name, if_not_exists }, false).await.map(one_row)
    }

    pub(crate) async fn create_table(
        &mut self,
        create: &ast::CreateTable,
    ) -> Result<Outcome, Failure> {
        refuse_odd(create)?;
        let (database, name) = split_name(&create.name, self.database.as_deref())?;
        check_name(&name, 1103, "table")?;
        check_not_system(&database)?;
        let catalog = self.shared.store.catalog();
        if !catalog.has_database(&database) {
            return Err(error::unknown_database(&database).into());
        }
        if create.if_not_exists && catalog.table(&database, &name).is_some() {
            let text = format!("Table '{name}' already exists");
            self.add_warnings(vec![error::make(1050, "42S01", &text)]);
        }
        let table = table_def(create, database, name)?;
        let if_not_exists = create.if_not_exists;
        let start = columns::table_options(&create.table_options)?.auto_increment;
        let place = (table.database.clone(), table.name.clone());
        let existed = catalog.table(&place.0, &place.1).is_some();
        let outcome = self.change(Change::CreateTable { table, if_not_exists }, false).await?;
        if let Some(last) = start.and_then(|start| start.checked_sub(1)).filter(|last| *last > 0)
            && !existed
        {
            let catalog = self.shared.store.catalog();
            let id = find(&catalog, &place.0, &place.1)?.id;
            self.observe(id, last).await?;
        }
        Ok(outcome)
    }

    pub(crate) async fn create_index(
        &mut self,
        create: &ast::CreateIndex,
    ) -> Result<Outcome, Failure> {
        let odd = create.concurrently
            || create.if_not_exists
            || !create.include.is_empty()
            || create.nulls_distinct.is_some()
            || !create.with.is_empty()
            || create.predicate.is_some()
            || !create.alter_options.is_empty()
            || !is_btree(create.using.as_ref());
        if odd {
            return Err(error::not_supported("this form of CREATE INDEX").into());
        }
        let Some(name) = &create.name else {
            return Err(error::syntax("CREATE INDEX needs a name").into());
        };
        let name = single_name(name)?;
        let (database, table) = split_name(&create.table_name, self.database.as_deref())?;
        check_not_system(&database)?;
        let catalog = self.shared.store.catalog();
        let def = find(&catalog, &database, &table)?;
        if def.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name)) {
            return Err(duplicate_index(&name).into());
        }
        let columns = index_columns(&create.columns, &def.columns)?;
        let builder = create.unique.then(|| self.shared.store.builder());
        let place = (database.clone(), table.clone(), name.clone());
        let change = Change::CreateIndex { database, table, name, columns, builder };
        let outcome = match (self.change(change, false).await, builder) {
            (Err(Failure::Store(error)), Some(builder)) => {
                // It may have been made all the same, and nobody would fill it.
                match self.shared.watch() {
                    Some(watch) => {
                        let store = self.shared.store.clone();
                        tokio::spawn(build::abandon(store, place, builder, watch));
                    }
                    None => tracing::warn!(
                        index = place.2,
                        "too many indexes could not be made lately: if this one turns up after all, drop it"
                    ),
                }
                return Err(error.into());
            }
            (changed, _) => changed?,
        };
        if let Some(builder) = builder {
            // It goes on, and cleans up, also when this session ends.
            let building = tokio::spawn(build::build(self.shared.store.clone(), place, builder));
            building
                .await
                .map_err(|_| error::internal("the building of the index has ended"))??;
        }
        Ok(no_records(outcome))
    }

    async fn drop_index(
        &mut self,
        names: &[ast::ObjectName],
        table: Option<&ast::ObjectName>,
    ) -> Result<Outcome, Failure> {
        let ([name], Some(table)) = (names, table) else {
            return Err(error::syntax("DROP INDEX needs a name, ON and a table").into());
        };
        let name = single_name(name)?;
        let (database, table) = split_name(table, self.database.as_deref())?;
        check_not_system(&database)?;
        if name.eq_ignore_ascii_case("PRIMARY") {
            return Err(error::not_supported("dropping a primary key").into());
        }
        let catalog = self.shared.store.catalog();
        let def = find(&catalog, &database, &table)?;
        let mut left = def.clone();
        left.indexes.retain(|i| !i.name.eq_ignore_ascii_case(&name));
        check_automatic(&left)?;
        self.change(Change::DropIndex { database, table, name }, true).await.map(no_records)
    }

    pub(crate) async fn drop_object(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let Statement::Drop { object_type, if_exists, names, temporary: false, table, .. } =
            statement
        else {
            return Err(error::not_supported("DROP TEMPORARY").into());
        };
        match object_type {
            ObjectType::Table => self.drop_tables(names, *if_exists).await,
            ObjectType::Schema | ObjectType::Database => {
                let [name] = names.as_slice() else {
                    return Err(error::syntax("near DROP DATABASE").into());
                };
                let name = single_name(name)?;
                check_not_system(&name)?;
                if *if_exists && !self.shared.store.catalog().has_database(&name) {
                    let text = format!("Can't drop database '{name}'; database doesn't exist");
                    self.add_warnings(vec![error::make(1008, "HY000", &text)]);
                }
                let change = Change::DropDatabase { name: name.clone(), if_exists: *if_exists };
                let outcome = self.change(change, true).await?;
                if self.database.as_deref() == Some(&name) {
                    self.database = None;
                }
                Ok(outcome)
            }
            ObjectType::Index if !*if_exists => self.drop_index(names, table.as_ref()).await,
            other => Err(error::not_supported(&format!("DROP {other}")).into()),
        }
    }

    async fn drop_tables(
        &mut self,
        names: &[ast::ObjectName],
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            tables.push(split_name(name, self.database.as_deref())?);
        }
        for (database, _) in &tables {
            check_not_system(database)?;
        }
        let catalog = self.shared.store.catalog();
        let missing: Vec<String> = tables
            .iter()
            .filter(|(database, table)| catalog.table(database, table).is_none())
            .map(|(database, table)| format!("{database}.{table}"))
            .collect();
        if !missing.is_empty() {
            let text = format!("Unknown table '{}'", missing.join(","));
            let unknown = error::make(1051, "42S02", &text);
            if !if_exists {
                return Err(unknown.into());
            }
            self.add_warnings(vec![unknown]);
        }
        for (database, name) in tables {
            self.change(Change::DropTable { database, name, if_exists }, true).await?;
        }
        Ok(Done::nothing())
    }

    pub(crate) async fn truncate(&mut self, truncate: &ast::Truncate) -> Result<Outcome, Failure> {
        let [target] = truncate.table_names.as_slice() else {
            return Err(error::syntax("near TRUNCATE").into());
        };
        if truncate.partitions.is_some()
            || truncate.if_exists
            || truncate.identity.is_some()
            || truncate.cascade.is_some()
            || truncate.on_cluster.is_some()
            || target.only
            || target.has_asterisk
        {
            return Err(error::not_supported("this form of TRUNCATE").into());
        }
        let (database, name) = split_name(&target.name, self.database.as_deref())?;
        check_not_system(&database)?;
        find(&self.shared.store.catalog(), &database, &name)?;
        self.change(Change::TruncateTable { database, name }, false).await
    }
}

/// Databases have no defaults of their own yet: only those of the server are taken.
fn check_database_defaults(charset: Option<&str>, collation: Option<&str>) -> Result<(), SqlError> {
    let charset = charset.map(|name| crate::bind::charset_collation(name.trim_matches('\'')));
    let collation = collation.map(|name| crate::bind::collation_named(name.trim_matches('\'')));
    for found in charset.into_iter().chain(collation) {
        if found? != Collation::default() {
            return Err(error::not_supported("databases with a collation of their own"));
        }
    }
    Ok(())
}

fn one_row(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(done) => Outcome::Done(Done { affected_rows: 1, ..done }),
        other => other,
    }
}

/// What MySQL says of changes that copy no rows into a new table.
fn no_records(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(done) => {
            let info = "Records: 0  Duplicates: 0  Warnings: 0".to_owned();
            Outcome::Done(Done { info, ..done })
        }
        other => other,
    }
}

fn check_name(name: &str, errno: u16, what: &str) -> Result<(), SqlError> {
    if name.is_empty() || name.ends_with(' ') || name.contains(['/', '\0']) {
        return Err(error::make(errno, "42000", &format!("Incorrect {what} name '{name}'")));
    }
    Ok(())
}

fn duplicate_index(name: &str) -> SqlError {
    error::make(1061, "42000", &format!("Duplicate key name '{name}'"))
}

fn refuse_odd(create: &ast::CreateTable) -> Result<(), SqlError> {
    if create.temporary || create.global.is_some() {
        return Err(error::not_supported("TEMPORARY tables"));
    }
    if create.query.is_some() {
        return Err(error::not_supported("CREATE TABLE … SELECT"));
    }
    if create.like.is_some() {
        return Err(error::not_supported("CREATE TABLE … LIKE"));
    }
    if create.partition_of.is_some() {
        return Err(error::not_supported("PARTITION OF"));
    }
    let odd = create.or_replace
        || create.external
        || create.dynamic
        || create.transient
        || create.volatile
        || create.iceberg
        || create.clone.is_some()
        || create.without_rowid
        || create.on_commit.is_some()
        || create.on_cluster.is_some()
        || create.primary_key.is_some()
        || create.order_by.is_some()
        || create.cluster_by.is_some()
        || create.clustered_by.is_some()
        || create.inherits.is_some()
        || create.for_values.is_some()
        || create.strict;
    if odd { Err(error::not_supported("this form of CREATE TABLE")) } else { Ok(()) }
}

fn table_def(
    create: &ast::CreateTable,
    database: String,
    name: String,
) -> Result<TableDef, SqlError> {
    let options = columns::table_options(&create.table_options)?;
    let mut table = TableDef {
        id: TableId::new(0),
        schema_version: 0,
        database,
        name,
        columns: Vec::with_capacity(create.columns.len()),
        primary_key: Vec::new(),
        indexes: Vec::new(),
        fragment_count: 0,
        comment: options.comment,
        partition_key: Vec::new(),
        index_of: None,
    };
    let mut inline_key = false;
    let mut uniques = Vec::new();
    for (column, at) in create.columns.iter().zip(0u16..) {
        let (def, is_key, is_unique) = columns::column_def(column, options.collation)?;
        if table.column(&def.name).is_some() {
            let text = format!("Duplicate column name '{}'", def.name);
            return Err(error::make(1060, "42S21", &text));
        }
        table.columns.push(def);
        if is_unique {
            uniques.push(at);
        }
        if is_key {
            if std::mem::replace(&mut inline_key, true) {
                return Err(multiple_keys());
            }
            table.primary_key = vec![at];
        }
    }
    if table.columns.is_empty() {
        return Err(error::make(1113, "42000", "A table must have at least 1 column"));
    }
    if table.columns.len() >= limits::COLUMNS_MAX {
        return Err(error::make(1117, "HY000", "Too many columns"));
    }
    for at in uniques {
        check_key_column(&table.columns[usize::from(at)])?;
        add_index(&mut table, None, vec![at], true)?;
    }
    let fixed = |c: &&ColumnDef| !is_blob(c.column_type.kind);
    let row_bytes: usize =
        table.columns.iter().filter(fixed).map(|c| c.column_type.max_bytes()).sum();
    if row_bytes > ROW_BYTES_DECLARED_MAX {
        let text = format!(
            "Row size too large. The maximum row size for the used table type, not counting BLOBs, \
             is {ROW_BYTES_DECLARED_MAX}. This includes storage overhead, check the manual. You have to \
             change some columns to TEXT or BLOBs"
        );
        return Err(error::make(1118, "42000", &text));
    }
    for constraint in &create.constraints {
        add_constraint(&mut table, constraint)?;
    }
    order_indexes(&mut table);
    finish_keys(&mut table)?;
    if let Some(columns) = create.partition_by.as_deref() {
        table.partition_key = partition_key(&table, columns)?;
    }
    Ok(table)
}

/// The columns of `PARTITION BY KEY`, which the primary key must have.
fn partition_key(table: &TableDef, columns: &ast::Expr) -> Result<Vec<u16>, SqlError> {
    let ast::Expr::Tuple(columns) = columns else {
        return Err(error::not_supported("this form of PARTITION BY"));
    };
    let mut found = Vec::with_capacity(columns.len());
    for column in columns {
        let named = match column {
            ast::Expr::Identifier(name) => table.column(&name.value),
            _ => None,
        };
        let Some(at) = named else {
            let text = "Field in list of fields for partition function not found in table";
            return Err(error::make(1488, "HY000", text));
        };
        if !table.primary_key.contains(&at) {
            let text = "A PRIMARY KEY must include all columns in the table's partitioning function \
                        (prefixed columns are not considered).";
            return Err(error::make(1503, "HY000", text));
        }
        found.push(at);
    }
    Ok(found)
}

fn multiple_keys() -> SqlError {
    error::make(1068, "42000", "Multiple primary key defined")
}

fn add_constraint(table: &mut TableDef, constraint: &TableConstraint) -> Result<(), SqlError> {
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            if !table.primary_key.is_empty() {
                return Err(multiple_keys());
            }
            if !is_btree(key.index_type.as_ref()) || key.characteristics.is_some() {
                return Err(error::not_supported("this form of PRIMARY KEY"));
            }
            table.primary_key = index_columns(&key.columns, &table.columns)?;
            Ok(())
        }
        TableConstraint::Index(index) => {
            if !is_btree(index.index_type.as_ref()) {
                return Err(error::not_supported("this form of INDEX"));
            }
            let columns = index_columns(&index.columns, &table.columns)?;
            add_index(table, index.name.as_ref(), columns, false)
        }
        TableConstraint::Unique(unique) => {
            if !is_btree(unique.index_type.as_ref()) || unique.characteristics.is_some() {
                return Err(error::not_supported("this form of UNIQUE"));
            }
            let columns = index_columns(&unique.columns, &table.columns)?;
            let name = unique.index_name.as_ref().or(unique.name.as_ref());
            add_index(table, name, columns, true)
        }
        TableConstraint::ForeignKey(_) => Err(error::not_supported("FOREIGN KEY")),
        TableConstraint::Check(_) => Err(error::not_supported("CHECK constraints")),
        TableConstraint::FulltextOrSpatial(_) => {
            Err(error::not_supported("FULLTEXT and SPATIAL indexes"))
        }
        other => Err(error::not_supported(&other.to_string())),
    }
}

fn add_index(
    table: &mut TableDef,
    name: Option<&ast::Ident>,
    columns: Vec<u16>,
    unique: bool,
) -> Result<(), SqlError> {
    let name = match name {
        Some(name) => name.value.clone(),
        None => free_index_name(table, &columns),
    };
    if table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name)) {
        return Err(duplicate_index(&name));
    }
    let number = u16::try_from(table.indexes.len() + 1).unwrap_or(u16::MAX);
    if usize::from(number) > limits::INDEXES_MAX {
        let text = format!("Too many keys specified; max {} keys allowed", limits::INDEXES_MAX);
        return Err(error::make(1069, "42000", &text));
    }
    // The catalog gives the table for its entries.
    let unique = unique.then_some(Unique { table: TableId::new(0), builder: None });
    table.indexes.push(IndexDef { id: IndexId::new(number), name, columns, unique });
    Ok(())
}

/// MySQL's order: unique indexes without NULLs, other unique ones, the rest.
fn order_indexes(table: &mut TableDef) {
    let columns = &table.columns;
    let has_nulls =
        |i: &IndexDef| i.columns.iter().any(|c| columns[usize::from(*c)].column_type.nullable);
    table.indexes.sort_by_key(|i| (i.unique.is_none(), i.unique.is_some() && has_nulls(i)));
    for (index, number) in table.indexes.iter_mut().zip(1u16..) {
        index.id = IndexId::new(number);
    }
}

/// MySQL names an index after its first column, and counts from 2 where that is taken.
fn free_index_name(table: &TableDef, columns: &[u16]) -> String {
    let first = columns.first().and_then(|c| table.columns.get(usize::from(*c)));
    let base = first.map_or("key", |c| c.name.as_str());
    let taken = |name: &str| table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name));
    if !taken(base) {
        return base.to_owned();
    }
    let mut number = 2;
    while taken(&format!("{base}_{number}")) {
        number += 1;
    }
    format!("{base}_{number}")
}

fn index_columns(list: &[ast::IndexColumn], columns: &[ColumnDef]) -> Result<Vec<u16>, SqlError> {
    let mut found = Vec::with_capacity(list.len());
    for part in list {
        let options = &part.column.options;
        let ast::Expr::Identifier(name) = &part.column.expr else {
            return Err(error::not_supported("index prefixes and expressions in indexes"));
        };
        if options.asc == Some(false) || options.nulls_first.is_some() {
            return Err(error::not_supported("descending indexes"));
        }
        let at = columns.iter().position(|c| c.name.eq_ignore_ascii_case(&name.value));
        let Some(at) = at.and_then(|at| u16::try_from(at).ok()) else {
            let text = format!("Key column '{}' doesn't exist in table", name.value);
            return Err(error::make(1072, "42000", &text));
        };
        if found.contains(&at) {
            let text = format!("Duplicate column name '{}'", name.value);
            return Err(error::make(1060, "42S21", &text));
        }
        check_key_column(&columns[usize::from(at)])?;
        found.push(at);
    }
    if found.len() > limits::KEY_COLUMNS_MAX {
        let text =
            format!("Too many key parts specified; max {} parts allowed", limits::KEY_COLUMNS_MAX);
        return Err(error::make(1070, "42000", &text));
    }
    Ok(found)
}

/// What the columns of a row may take together by their declaration, as in MySQL.
const ROW_BYTES_DECLARED_MAX: usize = 65_535;

fn is_blob(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
    )
}

fn check_key_column(column: &ColumnDef) -> Result<(), SqlError> {
    if !is_blob(column.column_type.kind) {
        return Ok(());
    }
    let text = format!(
        "BLOB/TEXT column '{}' used in key specification without a key length",
        column.name
    );
    Err(error::make(1170, "42000", &text))
}

/// The one column that is numbered by itself, if there is one; it must lead a key.
fn check_automatic(table: &TableDef) -> Result<Option<u16>, SqlError> {
    let numbered = table.columns.iter().zip(0u16..);
    let automatic: Vec<u16> =
        numbered.filter(|(c, _)| c.auto_increment).map(|(_, at)| at).collect();
    let leads_key = |at: &u16| {
        table.primary_key.first() == Some(at)
            || table.indexes.iter().any(|i| i.columns.first() == Some(at))
    };
    if automatic.len() > 1 || !automatic.iter().all(leads_key) {
        let text = "Incorrect table definition; there can be only one auto column and it must be \
                    defined as a key";
        return Err(error::make(1075, "42000", text));
    }
    Ok(automatic.first().copied())
}

fn finish_keys(table: &mut TableDef) -> Result<(), SqlError> {
    let automatic = check_automatic(table)?;
    if table.primary_key.is_empty() {
        if automatic.is_some() {
            return Err(error::not_supported("AUTO_INCREMENT without a primary key"));
        }
        let at = u16::try_from(table.columns.len()).unwrap_or(u16::MAX);
        table.columns.push(hidden_key());
        table.primary_key = vec![at];
    }
    for at in table.primary_key.clone() {
        let column = &mut table.columns[usize::from(at)];
        check_key_column(column)?;
        column.column_type.nullable = false;
        if column.default == DefaultValue::Literal(lats_values::Value::Null) {
            let text = "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, \
                        use UNIQUE instead";
            return Err(error::make(1171, "42000", text));
        }
    }
    Ok(())
}

fn hidden_key() -> ColumnDef {
    let column_type = ColumnType {
        collation: Collation::Binary,
        ..ColumnType::new(TypeKind::BigInt).unsigned().not_null()
    };
    ColumnDef { hidden: true, ..ColumnDef::new("$latsdb_key", column_type) }
}
