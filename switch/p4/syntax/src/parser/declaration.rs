//! Declarations (specification 6, 7, 10, 11).

use super::{Parse, Parser, Reported};
use crate::ast::{
    Annotation, ApplicableType, ConstantDeclaration, Constructor, Declaration, DeclarationKind, Direction, EnumDeclaration, EnumMember,
    Expr, ExternObject, Field, FunctionDeclaration, FunctionPrototype, Ident, Instantiation, Method, Parameter, Path, StructDeclaration,
    TypeAlias, TypeExpr, TypeExprKind, VariableDeclaration,
};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// `declaration` : one at the top level. `None` for the forward declaration of an extern (p4c's), which declares nothing yet.
    pub(super) fn declaration(&mut self) -> Parse<Option<Declaration>> {
        let annotations = self.annotations()?;
        let start = self.peek().span;
        let word = if self.peek().kind == TokenKind::Word { &*self.peek().text } else { "" };
        let brace_next = self.ahead(1).is(Punct::OpenBrace);
        let kind = match word {
            "const" => self.constant()?,
            "header" | "header_union" | "struct" => self.struct_like()?,
            "enum" => self.enumeration()?,
            "error" if brace_next => DeclarationKind::Error(self.member_names()?),
            "match_kind" if brace_next => DeclarationKind::MatchKind(self.member_names()?),
            "typedef" => self.alias()?,
            "type" if self.ahead(1).kind == TokenKind::Word => self.alias()?,
            "extern" => match self.external()? {
                Some(kind) => kind,
                None => return Ok(None),
            },
            "action" => self.action()?,
            "parser" => self.parser_declaration()?,
            "control" => self.control_declaration()?,
            "package" => self.package()?,
            "table" | "state" | "value_set" | "transition" | "apply" if self.ahead(1).kind == TokenKind::Word => {
                let (owner, rule) = match word {
                    "table" | "apply" => ("a control", "14, controls"),
                    _ => ("a parser", "13, parsers"),
                };
                let message = format!("`{word}` can stand only within {owner}");
                return Err(self.report(
                    Diagnostic::error(Code::MisplacedDeclaration, start, message).rule(rule).help("is a `}` too many before it?"),
                ));
            }
            _ if self.is(Punct::CloseBrace) => {
                let error = Diagnostic::error(Code::UnexpectedToken, start, "this `}` closes nothing");
                self.report(error);
                self.advance();
                return Ok(None);
            }
            _ => self.typed_declaration()?,
        };
        Ok(Some(Declaration { annotations, kind, span: self.span_from(start) }))
    }

    /// What begins with a type at the top level: `instantiation`, `functionDeclaration`; a variable is an error.
    fn typed_declaration(&mut self) -> Parse<DeclarationKind> {
        let before = self.at;
        if !self.begins_type(self.peek()) && !self.at_name() && !self.is(Punct::Dot) {
            return self.unexpected("a declaration");
        }
        let ty = self.type_ref()?;
        if self.is(Punct::OpenParen) {
            return self.instantiation(ty);
        }
        if self.at_name() && (self.ahead(1).is(Punct::OpenParen) || self.ahead(1).is(Punct::Less)) {
            return self.function(ty);
        }
        if self.at_name() && matches!(self.ahead(1).kind, TokenKind::Punct(Punct::Assign | Punct::Semicolon | Punct::OpenBracket)) {
            let name = self.name()?;
            let error = Diagnostic::error(Code::TopLevelVariable, name.span, format!("variable `{}` at the top level", name.name))
                .rule("11.2, variables are local to a parser, control, action, function or block")
                .help(format!("make it a constant: `const {} {} = ..;`", self.text_from(before), name.name));
            self.declare_object(&name);
            return Err(self.report(error));
        }
        if !self.at_name() {
            self.at = before;
            return self.unexpected("a declaration");
        }
        let name = self.name()?;
        let _ = name;
        self.unexpected("`(`")
    }

    /// The type's tokens from `before` to the name just taken, for a suggestion.
    fn text_from(&self, before: usize) -> String {
        let tokens = &self.tokens[before..self.at.saturating_sub(1).max(before)];
        tokens.iter().map(|token| token.text()).collect()
    }

    /// `constantDeclaration : optAnnotations CONST typeRef declarator '=' initializer ';'`
    pub(super) fn constant(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("const")?;
        let ty = self.type_ref()?;
        let name = self.name()?;
        let ty = self.array_suffix(ty)?;
        if self.is(Punct::Semicolon) {
            let error = Diagnostic::error(Code::UnexpectedToken, name.span, format!("constant `{}` has no value", name.name))
                .rule("11.1, a constant needs an initializer");
            self.declare_object(&name);
            return Err(self.report(error));
        }
        self.expect(Punct::Assign)?;
        let value = self.expression()?;
        self.declare_object(&name);
        self.semicolon()?;
        Ok(DeclarationKind::Constant(ConstantDeclaration { ty, name, value }))
    }

    /// `variableDeclaration : optAnnotations typeRef declarator optInitializer`, without its `;`, after the type.
    pub(super) fn variable(&mut self, ty: TypeExpr) -> Parse<DeclarationKind> {
        let name = self.name()?;
        let ty = self.array_suffix(ty)?;
        let initializer = if self.eat(Punct::Assign) { Some(self.expression()?) } else { None };
        self.declare_object(&name);
        Ok(DeclarationKind::Variable(VariableDeclaration { ty, name, initializer }))
    }

    /// `instantiation : optAnnotations typeRef '(' argumentList ')' name optObjInitializer ';'`, after the type.
    pub(super) fn instantiation(&mut self, ty: TypeExpr) -> Parse<DeclarationKind> {
        let arguments = self.arguments()?;
        let name = self.name()?;
        let initializer = if self.eat(Punct::Assign) { Some(self.object_initializer()?) } else { None };
        self.declare_object(&name);
        self.semicolon()?;
        Ok(DeclarationKind::Instantiation(Instantiation { ty, arguments, name, initializer }))
    }

    /// `optObjInitializer : '=' '{' objDeclarations '}'`: functions and instantiations.
    fn object_initializer(&mut self) -> Parse<Vec<Declaration>> {
        let mut out = Vec::new();
        self.scoped(|parser| {
            parser.braced(|parser| {
                let annotations = parser.annotations()?;
                let start = parser.peek().span;
                let ty = parser.type_ref()?;
                let kind = if parser.is(Punct::OpenParen) { parser.instantiation(ty)? } else { parser.function(ty)? };
                out.push(Declaration { annotations, kind, span: parser.span_from(start) });
                Ok(())
            })
        })?;
        Ok(out)
    }

    /// `headerTypeDeclaration`, `headerUnionDeclaration`, `structTypeDeclaration`
    fn struct_like(&mut self) -> Parse<DeclarationKind> {
        let make: fn(StructDeclaration) -> DeclarationKind = match self.advance().text() {
            "header" => DeclarationKind::Header,
            "struct" => DeclarationKind::Struct,
            _ => DeclarationKind::HeaderUnion,
        };
        let name = self.name()?;
        self.declare_type(&name);
        let mut fields = Vec::new();
        let type_parameters = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            parser.braced(|parser| {
                fields.push(parser.field()?);
                Ok(())
            })?;
            Ok(type_parameters)
        })?;
        Ok(make(StructDeclaration { name, type_parameters, fields }))
    }

    /// `structField : optAnnotations typeRef declarator ';'`
    fn field(&mut self) -> Parse<Field> {
        let annotations = self.annotations()?;
        let start = self.peek().span;
        let ty = self.type_ref()?;
        let name = self.name()?;
        let ty = self.array_suffix(ty)?;
        self.semicolon()?;
        Ok(Field { annotations, ty, name, span: self.span_from(start) })
    }

    /// `enumDeclaration : ENUM name '{' identifierList '}' | ENUM typeRef name '{' specifiedIdentifierList '}'`
    fn enumeration(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("enum")?;
        let plain = self.at_name() && self.ahead(1).is(Punct::OpenBrace);
        let underlying = if plain { None } else { Some(self.type_ref()?) };
        let name = self.name()?;
        self.declare_type(&name);
        self.expect(Punct::OpenBrace)?;
        let members = self.separated(Punct::CloseBrace, true, |parser| {
            let name = parser.name()?;
            let value = if parser.eat(Punct::Assign) { Some(parser.expression()?) } else { None };
            if value.is_some() != underlying.is_some() {
                let message = match underlying {
                    Some(_) => format!("member `{}` has no value", name.name),
                    None => format!("member `{}` has a value, but the enum no type", name.name),
                };
                parser.report(
                    Diagnostic::error(Code::EnumValue, name.span, message)
                        .rule("7.2.1, the members of an enum have values if and only if it has an underlying type")
                        .help("write `enum bit<8> E { A = 1 }` or `enum E { A }`"),
                );
            }
            Ok(EnumMember { name, value })
        })?;
        Ok(DeclarationKind::Enum(EnumDeclaration { name, underlying, members }))
    }

    /// `errorDeclaration : ERROR '{' identifierList '}'`, `matchKindDeclaration`
    fn member_names(&mut self) -> Parse<Vec<Ident>> {
        self.advance();
        self.expect(Punct::OpenBrace)?;
        self.separated(Punct::CloseBrace, true, Self::name)
    }

    /// `typedefDeclaration : TYPEDEF (typeRef | derivedTypeDeclaration) name | TYPE typeRef name`, with its `;`
    fn alias(&mut self) -> Parse<DeclarationKind> {
        let new = self.advance().is_word("type");
        let start = self.peek().span;
        let mut inline = None;
        let derived = ["header", "header_union", "struct", "enum"].iter().any(|word| self.is_word(word));
        let ty = if derived && !new {
            let kind = if self.is_word("enum") { self.enumeration()? } else { self.struct_like()? };
            let name = match &kind {
                DeclarationKind::Enum(declared) => declared.name.clone(),
                DeclarationKind::Header(declared) | DeclarationKind::HeaderUnion(declared) | DeclarationKind::Struct(declared) => {
                    declared.name.clone()
                }
                _ => return Err(Reported),
            };
            inline = Some(Box::new(Declaration { annotations: Vec::new(), kind, span: self.span_from(start) }));
            let span = name.span;
            self.make_type(TypeExprKind::Name(Path { absolute: false, name, span }), span)
        } else {
            self.type_ref()?
        };
        let name = self.name()?;
        let ty = self.array_suffix(ty)?;
        self.declare_type(&name);
        self.semicolon()?;
        let alias = TypeAlias { ty, name, inline };
        Ok(if new { DeclarationKind::Newtype(alias) } else { DeclarationKind::Typedef(alias) })
    }

    /// `externDeclaration : EXTERN nonTypeName optTypeParameters '{' methodPrototypes '}' | EXTERN functionPrototype ';'`, and
    /// p4c's forward declaration `EXTERN name ';'`.
    fn external(&mut self) -> Parse<Option<DeclarationKind>> {
        self.expect_word("extern")?;
        if self.at_name() && self.ahead(1).is(Punct::Semicolon) {
            let name = self.name()?;
            self.declare_type(&name);
            self.semicolon()?;
            return Ok(None);
        }
        if self.at_name() && self.object_body_follows() {
            return self.extern_object().map(Some);
        }
        let return_type = self.type_ref()?;
        let prototype = self.scoped(|parser| parser.prototype(return_type))?;
        self.declare_object(&prototype.name);
        self.semicolon()?;
        Ok(Some(DeclarationKind::ExternFunction(prototype)))
    }

    /// Whether `name {` or `name <names> {` comes next.
    fn object_body_follows(&self) -> bool {
        let mut by = 1;
        if self.ahead(by).is(Punct::Less) {
            while matches!(self.ahead(by).kind, TokenKind::Word | TokenKind::Punct(Punct::Less | Punct::Comma)) {
                by += 1;
            }
            if !self.ahead(by).is(Punct::Greater) {
                return false;
            }
            by += 1;
        }
        self.ahead(by).is(Punct::OpenBrace)
    }

    fn extern_object(&mut self) -> Parse<DeclarationKind> {
        let name = self.name()?;
        self.declare_type(&name);
        let mut constructors = Vec::new();
        let mut methods = Vec::new();
        let type_parameters = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            parser.braced(|parser| {
                let annotations = parser.annotations()?;
                let start = parser.peek().span;
                // methodPrototype : TYPE_IDENTIFIER '(' parameterList ')' ';'
                if parser.is_word(&name.name) && parser.ahead(1).is(Punct::OpenParen) {
                    let name = parser.name()?;
                    let parameters = parser.scoped(Self::parameters)?;
                    parser.semicolon()?;
                    constructors.push(Constructor { annotations, name, parameters, span: parser.span_from(start) });
                    return Ok(());
                }
                let is_abstract = parser.eat_word("abstract");
                let return_type = parser.type_ref()?;
                let prototype = parser.scoped(|parser| parser.prototype(return_type))?;
                parser.semicolon()?;
                methods.push(Method { annotations, is_abstract, prototype, span: parser.span_from(start) });
                Ok(())
            })?;
            Ok(type_parameters)
        })?;
        Ok(DeclarationKind::ExternObject(ExternObject { name, type_parameters, constructors, methods }))
    }

    /// `functionPrototype : typeOrVoid name optTypeParameters '(' parameterList ')'`, after the type. Names its parameters in the current
    /// scope.
    fn prototype(&mut self, return_type: TypeExpr) -> Parse<FunctionPrototype> {
        let start = return_type.span;
        let name = self.name()?;
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        Ok(FunctionPrototype { return_type, name, type_parameters, parameters, span: self.span_from(start) })
    }

    /// `functionDeclaration : functionPrototype blockStatement`, after the type.
    fn function(&mut self, return_type: TypeExpr) -> Parse<DeclarationKind> {
        let (prototype, body) = self.scoped(|parser| {
            let prototype = parser.prototype(return_type)?;
            let body = parser.block(Vec::new())?;
            Ok((prototype, body))
        })?;
        self.declare_object(&prototype.name);
        Ok(DeclarationKind::Function(FunctionDeclaration { prototype, body }))
    }

    /// `packageTypeDeclaration : PACKAGE name optTypeParameters '(' parameterList ')' ';'`
    fn package(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("package")?;
        let name = self.name()?;
        self.declare_type(&name);
        let (type_parameters, parameters) = self.scoped(Self::applicable)?;
        self.semicolon()?;
        Ok(DeclarationKind::Package(ApplicableType { name, type_parameters, parameters }))
    }

    /// `optTypeParameters '(' parameterList ')'`, named in the current scope.
    pub(super) fn applicable(&mut self) -> Parse<(Vec<Ident>, Vec<Parameter>)> {
        Ok((self.type_parameters()?, self.parameters()?))
    }

    /// `'(' parameterList ')'`; the parameters become names of the current scope.
    pub(super) fn parameters(&mut self) -> Parse<Vec<Parameter>> {
        self.expect(Punct::OpenParen)?;
        self.separated(Punct::CloseParen, false, Self::parameter)
    }

    /// `parameter : optAnnotations direction typeRef name ['=' expression]`
    fn parameter(&mut self) -> Parse<Parameter> {
        let annotations = self.annotations()?;
        let start: Span = self.peek().span;
        let direction = if self.eat_word("in") {
            Direction::In
        } else if self.eat_word("out") {
            Direction::Out
        } else if self.eat_word("inout") {
            Direction::InOut
        } else {
            Direction::None
        };
        let ty = self.type_ref()?;
        let name = self.name()?;
        let ty = self.array_suffix(ty)?;
        let default: Option<Expr> = if self.eat(Punct::Assign) { Some(self.expression()?) } else { None };
        self.declare_object(&name);
        Ok(Parameter { annotations, direction, ty, name, default, span: self.span_from(start) })
    }

    /// A declaration node around a kind that was parsed from `start` on.
    pub(super) fn declared(&self, annotations: Vec<Annotation>, kind: DeclarationKind, start: Span) -> Declaration {
        Declaration { annotations, kind, span: self.span_from(start) }
    }
}
