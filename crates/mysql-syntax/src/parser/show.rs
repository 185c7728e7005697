//! SHOW.

use super::primary::scope_of;
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{Scope, Show, ShowFilter, ShowWhat, Statement, Text};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What SHOW shows that LatsDB has not: the name, and what follows SHOW.
const OTHERS: [(&str, &str); 15] = [
    ("SHOW BINARY LOG STATUS", "BINARY LOG STATUS"),
    ("SHOW BINARY LOGS", "BINARY LOGS"),
    (
        "SHOW BINLOG EVENTS",
        "BINLOG EVENTS [ IN <text> ] [ FROM <int> ] [ LIMIT <limit> [ , <limit> | OFFSET <limit> ] ]",
    ),
    (
        "SHOW RELAYLOG EVENTS",
        "RELAYLOG EVENTS [ IN <text> ] [ FROM <int> ] [ LIMIT <limit> [ , <limit> | OFFSET <limit> ] ] [ FOR CHANNEL <nametext> ]",
    ),
    ("SHOW REPLICA STATUS", "REPLICA STATUS [ FOR CHANNEL <nametext> ]"),
    ("SHOW REPLICAS", "REPLICAS"),
    ("SHOW CREATE PROCEDURE", "CREATE PROCEDURE <table>"),
    ("SHOW CREATE FUNCTION", "CREATE FUNCTION <table>"),
    ("SHOW CREATE TRIGGER", "CREATE TRIGGER <table>"),
    ("SHOW CREATE EVENT", "CREATE EVENT <table>"),
    ("SHOW PROCEDURE CODE", "PROCEDURE CODE <table>"),
    ("SHOW FUNCTION CODE", "FUNCTION CODE <table>"),
    ("SHOW ENGINE", "ENGINE { ALL | <nametext> } { STATUS | MUTEX | LOGS }"),
    (
        "SHOW PROFILE",
        "PROFILE [ { ALL | BLOCK IO | CONTEXT SWITCHES | CPU | IPC | MEMORY | PAGE FAULTS | SOURCE | SWAPS }, ] \
         [ FOR QUERY <int> ] [ LIMIT <limit> [ , <limit> | OFFSET <limit> ] ]",
    ),
    ("SHOW PARSE_TREE", "PARSE_TREE <statement>"),
];

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Statement> {
        let first = self.at;
        self.advance();
        for (name, pattern) in OTHERS {
            if self.starts(pattern) {
                self.follow(pattern)?;
                return Ok(self.other_since(name, first));
            }
        }
        let mut show = Show {
            what: ShowWhat::Tables,
            is_full: false,
            is_extended: false,
            scope: Scope::None,
            if_not_exists: false,
            table: None,
            schema: Text::NONE,
            account: None,
            roles: Vec::new(),
            filter: None,
            limit: None,
        };
        show.is_extended = self.eat_word(K::EXTENDED);
        show.is_full = self.eat_word(K::FULL);
        show.scope = scope_of(self.token().word);
        if show.scope != Scope::None {
            self.advance();
        }
        self.show_what(&mut show)?;
        Ok(Statement::Show(Box::new(show)))
    }

    fn show_what(&mut self, show: &mut Show) -> Result<()> {
        let at = self.token().start;
        let word = self.token().word;
        let has_scope = show.scope != Scope::None;
        let may_follow = match word {
            K::TABLES => !has_scope,
            K::COLUMNS | K::FIELDS => !has_scope,
            K::INDEX | K::INDEXES | K::KEYS => !has_scope && !show.is_full,
            K::TRIGGERS | K::PROCESSLIST => !has_scope && !show.is_extended,
            K::STATUS | K::VARIABLES => !show.is_full && !show.is_extended,
            _ => !has_scope && !show.is_full && !show.is_extended,
        };
        if !may_follow || matches!(show.scope, Scope::Persist | Scope::PersistOnly) {
            return Err(self.error_at(at));
        }
        self.advance();
        match word {
            K::DATABASES | K::SCHEMAS => self.show_filtered(show, ShowWhat::Databases),
            K::TABLES => self.show_in_schema(show, ShowWhat::Tables),
            K::TRIGGERS => self.show_in_schema(show, ShowWhat::Triggers),
            K::EVENTS => self.show_in_schema(show, ShowWhat::Events),
            K::TABLE => {
                self.expect_word(K::STATUS)?;
                self.show_in_schema(show, ShowWhat::TableStatus)
            }
            K::OPEN => {
                self.expect_word(K::TABLES)?;
                self.show_in_schema(show, ShowWhat::OpenTables)
            }
            K::COLUMNS | K::FIELDS => self.show_of_table(show, ShowWhat::Columns),
            K::INDEX | K::INDEXES | K::KEYS => self.show_of_table(show, ShowWhat::Index),
            K::PLUGINS => Self::show_plain(show, ShowWhat::Plugins),
            K::ENGINES => Self::show_plain(show, ShowWhat::Engines),
            K::STORAGE => {
                self.expect_word(K::ENGINES)?;
                Self::show_plain(show, ShowWhat::Engines)
            }
            K::PRIVILEGES => Self::show_plain(show, ShowWhat::Privileges),
            K::PROFILES => Self::show_plain(show, ShowWhat::Profiles),
            K::PROCESSLIST => Self::show_plain(show, ShowWhat::Processlist),
            K::CHARSET => self.show_filtered(show, ShowWhat::Charset),
            K::CHARACTER | K::CHAR => {
                self.expect_word(K::SET)?;
                self.show_filtered(show, ShowWhat::Charset)
            }
            K::COLLATION => self.show_filtered(show, ShowWhat::Collation),
            K::STATUS => self.show_filtered(show, ShowWhat::Status),
            K::VARIABLES => self.show_filtered(show, ShowWhat::Variables),
            K::WARNINGS => self.show_limited(show, ShowWhat::Warnings),
            K::ERRORS => self.show_limited(show, ShowWhat::Errors),
            K::COUNT => self.show_count(show),
            K::GRANTS => self.show_grants(show),
            K::CREATE => self.show_create(show),
            K::PROCEDURE | K::FUNCTION => {
                self.expect_word(K::STATUS)?;
                let is_procedure = word == K::PROCEDURE;
                let what =
                    if is_procedure { ShowWhat::ProcedureStatus } else { ShowWhat::FunctionStatus };
                self.show_filtered(show, what)
            }
            _ => Err(self.error_at(at)),
        }
    }

    fn show_plain(show: &mut Show, what: ShowWhat) -> Result<()> {
        show.what = what;
        Ok(())
    }

    fn show_filtered(&mut self, show: &mut Show, what: ShowWhat) -> Result<()> {
        show.what = what;
        if self.eat_word(K::LIKE) {
            show.filter = Some(ShowFilter::Like(self.text()?));
        } else if let Some(condition) = self.filter()? {
            show.filter = Some(ShowFilter::Where(condition));
        }
        Ok(())
    }

    fn show_in_schema(&mut self, show: &mut Show, what: ShowWhat) -> Result<()> {
        if self.eat_one_of(&[K::FROM, K::IN]).is_some() {
            show.schema = self.name()?;
        }
        self.show_filtered(show, what)
    }

    fn show_of_table(&mut self, show: &mut Show, what: ShowWhat) -> Result<()> {
        self.expect_one_of(&[K::FROM, K::IN])?;
        show.table = Some(self.table_name()?);
        if self.eat_one_of(&[K::FROM, K::IN]).is_some() {
            show.schema = self.name()?;
        }
        if what == ShowWhat::Index && self.is_word(K::LIKE) {
            return Err(self.error());
        }
        self.show_filtered(show, what)
    }

    fn show_limited(&mut self, show: &mut Show, what: ShowWhat) -> Result<()> {
        show.what = what;
        show.limit = self.limit()?;
        Ok(())
    }

    /// `COUNT(*) WARNINGS`, whose first word is passed.
    fn show_count(&mut self, show: &mut Show) -> Result<()> {
        self.expect(Kind::Open)?;
        self.expect(Kind::Star)?;
        self.expect(Kind::Close)?;
        let word = self.expect_one_of(&[K::WARNINGS, K::ERRORS])?;
        show.what =
            if word == K::WARNINGS { ShowWhat::CountWarnings } else { ShowWhat::CountErrors };
        Ok(())
    }

    fn show_grants(&mut self, show: &mut Show) -> Result<()> {
        show.what = ShowWhat::Grants;
        if self.eat_word(K::FOR) {
            show.account = Some(self.account()?);
            if self.eat_word(K::USING) {
                show.roles = self.comma_list(Self::account)?;
            }
        }
        Ok(())
    }

    fn show_create(&mut self, show: &mut Show) -> Result<()> {
        match self.expect_one_of(&[K::TABLE, K::VIEW, K::DATABASE, K::SCHEMA, K::USER])? {
            K::TABLE => {
                show.what = ShowWhat::CreateTable;
                show.table = Some(self.table_name()?);
            }
            K::VIEW => {
                show.what = ShowWhat::CreateView;
                show.table = Some(self.table_name()?);
            }
            K::USER => {
                show.what = ShowWhat::CreateUser;
                show.account = Some(self.account()?);
            }
            _ => {
                show.what = ShowWhat::CreateDatabase;
                show.if_not_exists = self.eat_if_not_exists()?;
                show.schema = self.name()?;
            }
        }
        Ok(())
    }
}
