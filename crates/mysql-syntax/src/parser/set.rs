//! SET in all its forms.

use super::primary::scope_of;
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{Account, Scope, SetItem, SetRoleKind, SetValue, Statement, Text};
use Keyword as K;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.advance();
        let is_assigned = matches!(self.kind_ahead(1), Kind::Equal | Kind::Assign | Kind::Dot);
        if let Some(scope) = self.at_set_transaction() {
            if scope != Scope::None {
                self.advance();
            }
            self.advance();
            return self.set_transaction(scope);
        }
        match self.token().word {
            K::ROLE if !is_assigned => return self.set_role(),
            K::DEFAULT if self.word_ahead(1) == K::ROLE => return self.set_default_role(),
            K::RESOURCE if self.word_ahead(1) == K::GROUP => {
                let pattern = "RESOURCE GROUP <name> [ FOR { <int> [ , ]* }* ]";
                return self.other_behind("SET RESOURCE GROUP", pattern);
            }
            K::PASSWORD => return Ok(Statement::Set(alloc::vec![self.set_password()?])),
            _ => {}
        }
        Ok(Statement::Set(self.comma_list(Self::set_item)?))
    }

    fn set_item(&mut self) -> Result<SetItem> {
        if self.eat(Kind::At) {
            if self.eat(Kind::At) {
                let (scope, component, name) = self.system_variable()?;
                let value = self.set_value()?;
                return Ok(SetItem::System { scope, has_at: true, component, name, value });
            }
            let name = self.variable_name()?;
            self.assign()?;
            let value = self.expr()?;
            return Ok(SetItem::User { name, value });
        }
        if self.at_charset() {
            self.eat_charset();
            if self.eat_word(K::DEFAULT) {
                return Ok(SetItem::Charset(Text::NONE));
            }
            return Ok(SetItem::Charset(self.charset_name()?));
        }
        let is_assigned = matches!(self.kind_ahead(1), Kind::Equal | Kind::Assign | Kind::Dot);
        if self.is_word(K::NAMES) {
            self.advance();
            if is_assigned {
                return Err(self.error());
            }
            return self.set_names();
        }
        let mut scope = scope_of(self.token().word);
        if is_assigned {
            if scope != Scope::None {
                return Err(self.error_at(self.ahead(1).start));
            }
            scope = Scope::None;
        } else if scope != Scope::None {
            self.advance();
        }
        let (mut component, mut name) = (Text::NONE, Text::NONE);
        if self.is_word(K::DEFAULT) && self.kind_ahead(1) == Kind::Dot {
            self.advance();
            name = self.tree.add_text(b"default");
        }
        if name.is_none() {
            name = self.name()?;
        }
        if self.eat(Kind::Dot) {
            (component, name) = (name, self.name()?);
        }
        let value = self.set_value()?;
        Ok(SetItem::System { scope, has_at: false, component, name, value })
    }

    fn assign(&mut self) -> Result<()> {
        if self.eat(Kind::Assign) { Ok(()) } else { self.expect(Kind::Equal) }
    }

    /// `= value`
    fn set_value(&mut self) -> Result<SetValue> {
        self.assign()?;
        let ends = matches!(self.kind_ahead(1), Kind::Comma | Kind::End | Kind::Semicolon);
        match self.token().word {
            K::DEFAULT if ends => {
                self.advance();
                Ok(SetValue::Default)
            }
            word @ (K::ON | K::ALL | K::BINARY | K::ROW | K::SYSTEM) if ends => {
                self.advance();
                Ok(SetValue::Word(word))
            }
            _ => Ok(SetValue::Expr(self.expr()?)),
        }
    }

    fn set_names(&mut self) -> Result<SetItem> {
        if self.eat_word(K::DEFAULT) {
            return Ok(SetItem::Names { charset: Text::NONE, collation: Text::NONE });
        }
        let charset = self.charset_name()?;
        let collation = if self.eat_word(K::COLLATE) { self.collation_name()? } else { Text::NONE };
        Ok(SetItem::Names { charset, collation })
    }

    /// `PASSWORD [FOR user] = 'text'` or `TO RANDOM`.
    fn set_password(&mut self) -> Result<SetItem> {
        self.advance();
        let account = if self.eat_word(K::FOR) { Some(self.account()?) } else { None };
        let (mut password, mut is_random) = (Text::NONE, false);
        if self.eat_word(K::TO) {
            self.expect_word(K::RANDOM)?;
            is_random = true;
        } else {
            self.assign()?;
            password = self.text()?;
        }
        let current = if self.eat_word(K::REPLACE) { self.text()? } else { Text::NONE };
        let retain = self.eat_word(K::RETAIN);
        if retain {
            self.expect_words(&[K::CURRENT, K::PASSWORD])?;
        }
        Ok(SetItem::Password { account, password, is_random, current, retain })
    }

    pub(super) fn roles(&mut self) -> Result<Vec<Account>> {
        self.comma_list(Self::role)
    }

    fn set_role(&mut self) -> Result<Statement> {
        self.advance();
        let kind = match self.eat_one_of(&[K::NONE, K::DEFAULT, K::ALL]) {
            Some(K::NONE) => SetRoleKind::None,
            Some(K::DEFAULT) => SetRoleKind::Default,
            Some(_) if self.eat_word(K::EXCEPT) => SetRoleKind::AllExcept,
            Some(_) => SetRoleKind::All,
            None => SetRoleKind::Roles,
        };
        let has_roles = matches!(kind, SetRoleKind::Roles | SetRoleKind::AllExcept);
        let roles = if has_roles { self.roles()? } else { Vec::new() };
        Ok(Statement::SetRole { kind, roles })
    }

    fn set_default_role(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let (kind, roles) = match self.eat_one_of(&[K::NONE, K::ALL]) {
            Some(K::NONE) => (SetRoleKind::None, Vec::new()),
            Some(_) => (SetRoleKind::All, Vec::new()),
            None => (SetRoleKind::Roles, self.roles()?),
        };
        self.expect_word(K::TO)?;
        let users = self.comma_list(Self::account)?;
        Ok(Statement::SetDefaultRole { kind, roles, users })
    }
}
