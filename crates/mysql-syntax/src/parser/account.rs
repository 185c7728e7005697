//! Accounts, roles and privileges.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Account, Auth, Grant, GrantLevel, GrantWhat, Privilege, Statement, Text, UserChange, UserSpec,
};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What follows the accounts of CREATE USER and ALTER USER.
const OPTIONS: &str = "[ REQUIRE { NONE | { SSL | X509 | CIPHER <text> | ISSUER <text> | SUBJECT <text> } \
    [ [ AND ] { CIPHER <text> | ISSUER <text> | SUBJECT <text> } ]* } ] \
    [ WITH { MAX_QUERIES_PER_HOUR <int> | MAX_UPDATES_PER_HOUR <int> | MAX_CONNECTIONS_PER_HOUR <int> \
    | MAX_USER_CONNECTIONS <int> }* ] \
    [ ACCOUNT { LOCK | UNLOCK } | PASSWORD EXPIRE [ DEFAULT | NEVER | INTERVAL <int> DAY ] | PASSWORD HISTORY { DEFAULT | <int> } \
    | PASSWORD REUSE INTERVAL { DEFAULT | <int> DAY } | PASSWORD REQUIRE CURRENT [ DEFAULT | OPTIONAL ] \
    | FAILED_LOGIN_ATTEMPTS <int> | PASSWORD_LOCK_TIME { <int> | UNBOUNDED } ]* [ COMMENT <text> | ATTRIBUTE <text> ]";

/// What follows the first proof of an account, besides AND IDENTIFIED …
const MORE: &str = "[ AND IDENTIFIED { BY { RANDOM PASSWORD | <text> } | WITH <nametext> [ BY { RANDOM PASSWORD | <text> } | AS <value> ] } ]* \
    [ INITIAL AUTHENTICATION IDENTIFIED { BY { RANDOM PASSWORD | <text> } | WITH <nametext> AS <value> } ]";

/// The same of ALTER USER.
const MORE_OF_ALTER: &str = "[ RETAIN CURRENT PASSWORD ] [ DISCARD OLD PASSWORD ] \
    [ { ADD | MODIFY | DROP } <int> FACTOR [ IDENTIFIED { BY { RANDOM PASSWORD | <text> } \
    | WITH <nametext> [ BY { RANDOM PASSWORD | <text> } | AS <value> ] } ] ]* \
    [ <int> FACTOR { INITIATE REGISTRATION | UNREGISTER | FINISH REGISTRATION SET CHALLENGE_RESPONSE AS <text> } ]*";

/// AS … in GRANT.
const RUN_AS: &str =
    "[ AS <user> [ WITH ROLE { NONE | ALL [ EXCEPT { <role> }, ] | DEFAULT | { <role> }, } ] ]";

impl Parser<'_> {
    /// CREATE USER and ALTER USER.
    pub(super) fn user_change(&mut self, is_alter: bool) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = if is_alter { self.eat_if_exists()? } else { self.eat_if_not_exists()? };
        let mut change = UserChange {
            is_alter,
            if_exists,
            users: Vec::new(),
            default_roles: Vec::new(),
            default_role: K::None,
            options: Text::NONE,
        };
        // USER() is the account itself, as CURRENT_USER is.
        if is_alter && self.is_word(K::USER) && self.kind_ahead(1) == Kind::Open {
            self.advance();
            self.advance();
            self.expect(Kind::Close)?;
            let spec = self.user_spec(Account::Current, true)?;
            change.users.push(spec);
        } else {
            change.users = self.comma_list(|parser| {
                let account = parser.account()?;
                parser.user_spec(account, is_alter)
            })?;
        }
        if self.eat_words(&[K::DEFAULT, K::ROLE]) {
            change.default_role = match self.eat_one_of(&[K::ALL, K::NONE]) {
                Some(word) if is_alter => word,
                Some(_) => return Err(self.error_at(self.last_span().start)),
                None => K::None,
            };
            if change.default_role == K::None {
                change.default_roles = self.roles()?;
            }
        }
        change.options = self.raw_pattern(OPTIONS)?;
        Ok(Statement::User(Box::new(change)))
    }

    /// Follows a pattern, and gives its tokens; none if there are none.
    fn raw_pattern(&mut self, pattern: &'static str) -> Result<Text> {
        let (first, pool) = (self.at, self.tree.bytes.len());
        self.follow(pattern)?;
        self.tree.bytes.truncate(pool);
        Ok(if self.at == first { Text::NONE } else { self.raw_from(first) })
    }

    fn user_spec(&mut self, account: Account, is_alter: bool) -> Result<UserSpec> {
        let mut auth = Auth {
            is_identified: false,
            plugin: Text::NONE,
            password: Text::NONE,
            hash: Text::NONE,
            is_random: false,
            current: Text::NONE,
        };
        if self.eat_word(K::IDENTIFIED) {
            auth.is_identified = true;
            let mut has_password = true;
            if self.eat_word(K::WITH) {
                auth.plugin = self.name_or_text()?;
                has_password = self.is_word(K::BY);
                if self.eat_word(K::AS) {
                    auth.hash = self.text_or_digits()?;
                }
            }
            if has_password {
                self.expect_word(K::BY)?;
                auth.is_random = self.eat_words(&[K::RANDOM, K::PASSWORD]);
                if !auth.is_random {
                    auth.password = self.text()?;
                }
            }
            if is_alter && self.eat_word(K::REPLACE) {
                auth.current = self.text()?;
            }
        }
        let more = if is_alter {
            self.raw_pattern(MORE_OF_ALTER)?
        } else if auth.is_identified {
            self.raw_pattern(MORE)?
        } else {
            Text::NONE
        };
        Ok(UserSpec { account, auth, more })
    }

    pub(super) fn create_role(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.eat_if_not_exists()?;
        let roles = self.roles()?;
        Ok(Statement::CreateRoles { if_not_exists, roles })
    }

    pub(super) fn drop_users(&mut self) -> Result<Statement> {
        self.advance();
        let is_role = self.is_word(K::ROLE);
        self.advance();
        let if_exists = self.eat_if_exists()?;
        let users = if is_role { self.roles()? } else { self.comma_list(Self::account)? };
        Ok(Statement::DropUsers { is_role, if_exists, users })
    }

    /// GRANT and REVOKE.
    pub(super) fn grant(&mut self) -> Result<Statement> {
        let is_revoke = self.is_word(K::REVOKE);
        self.advance();
        let mut grant = Grant {
            is_revoke,
            if_exists: is_revoke && self.eat_if_exists()?,
            what: GrantWhat::All,
            object: K::None,
            level: GrantLevel::Here,
            users: Vec::new(),
            with_grant_option: false,
            with_admin_option: false,
            ignore_unknown_user: false,
            run_as: Text::NONE,
        };
        let has_object = self.grant_what(&mut grant)?;
        if has_object {
            self.expect_word(K::ON)?;
            grant.object = self.grant_object();
            grant.level = self.grant_level()?;
        }
        self.expect_word(if is_revoke { K::FROM } else { K::TO })?;
        grant.users = self.comma_list(Self::account)?;
        if is_revoke {
            if self.eat_word(K::IGNORE) {
                self.expect_words(&[K::UNKNOWN, K::USER])?;
                grant.ignore_unknown_user = true;
            }
            return Ok(Statement::Grant(Box::new(grant)));
        }
        if self.eat_word(K::WITH) {
            let is_role = matches!(grant.what, GrantWhat::Roles(_));
            self.expect_word(if is_role { K::ADMIN } else { K::GRANT })?;
            self.expect_word(K::OPTION)?;
            grant.with_admin_option = is_role;
            grant.with_grant_option = !is_role;
        }
        if has_object {
            grant.run_as = self.raw_pattern(RUN_AS)?;
        }
        Ok(Statement::Grant(Box::new(grant)))
    }

    /// What is granted, and whether ON follows.
    fn grant_what(&mut self, grant: &mut Grant) -> Result<bool> {
        if self.eat_word(K::PROXY) {
            self.expect_word(K::ON)?;
            grant.what = GrantWhat::Proxy(self.account()?);
            return Ok(false);
        }
        if self.eat_word(K::ALL) {
            self.eat_word(K::PRIVILEGES);
            if grant.is_revoke && self.eat(Kind::Comma) {
                self.expect_words(&[K::GRANT, K::OPTION])?;
                grant.what = GrantWhat::AllAndGrantOption;
                return Ok(false);
            }
            return Ok(true);
        }
        let (mut privileges, mut may_be_roles) = (Vec::new(), true);
        loop {
            let (privilege, is_static) = self.privilege()?;
            may_be_roles &= !is_static;
            privileges.push(privilege);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        if may_be_roles && !self.is_word(K::ON) {
            grant.what = GrantWhat::Roles(privileges);
            return Ok(false);
        }
        grant.what = GrantWhat::Privileges(privileges);
        Ok(true)
    }

    /// A privilege, and whether it is one of MySQL's own and so no role.
    fn privilege(&mut self) -> Result<(Privilege, bool)> {
        const WITH_COLUMNS: [Keyword; 4] = [K::SELECT, K::INSERT, K::UPDATE, K::REFERENCES];
        const WORDS: &str = "{ SELECT | INSERT | UPDATE | REFERENCES | DELETE | USAGE | INDEX | DROP ROLE | DROP | EXECUTE | RELOAD \
            | SHUTDOWN | PROCESS | FILE | GRANT OPTION | SHOW DATABASES | SUPER | CREATE TEMPORARY TABLES | LOCK TABLES \
            | REPLICATION SLAVE | REPLICATION CLIENT | CREATE VIEW | SHOW VIEW | CREATE ROUTINE | ALTER ROUTINE | CREATE USER \
            | CREATE TABLESPACE | CREATE ROLE | CREATE | ALTER | EVENT | TRIGGER }";
        if self.starts(WORDS) {
            let (first, word) = (self.at, self.token().word);
            self.follow(WORDS)?;
            let name = self.raw_from(first);
            let start = self.tree.bytes.len() - self.tree.text(name).len();
            self.tree.bytes[start..].make_ascii_uppercase();
            let has_columns = WITH_COLUMNS.contains(&word) && self.is(Kind::Open);
            let columns = if has_columns { self.names_in_parentheses()? } else { Vec::new() };
            return Ok((Privilege { name, host: Text::NONE, is_static: true, columns }, true));
        }
        let name = self.name_or_text()?;
        let host = if self.eat(Kind::At) { self.name_or_text()? } else { Text::NONE };
        let columns = if self.is(Kind::Open) { self.names_in_parentheses()? } else { Vec::new() };
        let is_static = !columns.is_empty();
        Ok((Privilege { name, host, is_static: false, columns }, is_static))
    }

    fn grant_object(&mut self) -> Keyword {
        let is_last = matches!(self.kind_ahead(1), Kind::Dot) || self.word_ahead(1) == K::TO;
        if is_last {
            K::None
        } else {
            self.eat_one_of(&[K::TABLE, K::FUNCTION, K::PROCEDURE]).unwrap_or(K::None)
        }
    }

    fn grant_level(&mut self) -> Result<GrantLevel> {
        if self.eat(Kind::Star) {
            if !self.eat(Kind::Dot) {
                return Ok(GrantLevel::Here);
            }
            self.expect(Kind::Star)?;
            return Ok(GrantLevel::Global);
        }
        let name = self.name()?;
        if !self.eat(Kind::Dot) {
            return Ok(GrantLevel::Object { schema: Text::NONE, name });
        }
        if self.eat(Kind::Star) {
            return Ok(GrantLevel::Schema(name));
        }
        Ok(GrantLevel::Object { schema: name, name: self.name()? })
    }
}
