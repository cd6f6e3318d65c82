//! What each name of a program stands for, for editors: where it is declared, where it is used, its type.
//!
//! A walk that resolves names as spec 6.9 does; members of values by the types that the checker found. It takes trees with gaps: what the parser
//! left out is missing here too, and an expression whose type is unknown has no members.

use std::collections::HashMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::visit::{self, Visit};

use crate::check::{declared_name, CallTarget, Checked, ConstVal};
use crate::types::{DeclId, Named, Type};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Constant,
    Variable,
    Instance,
    Header,
    HeaderUnion,
    Struct,
    Enum,
    EnumMember,
    Error,
    MatchKind,
    Typedef,
    Extern,
    Constructor,
    Method,
    Function,
    Action,
    Table,
    ValueSet,
    Parser,
    Control,
    /// The type of a parser or control, without a body.
    BlockType,
    Package,
    Parameter,
    TypeParameter,
    Field,
    State,
}

/// A declaration.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The name.
    pub name: Symbol,
    /// What it is.
    pub kind: Kind,
    /// Where the name stands.
    pub span: Span,
    /// The whole declaration, without its annotations.
    pub whole: Span,
    /// Where its scope ends: the declaration or block around it; `None` at the top level.
    pub scope: Option<Span>,
    /// The definition that it is a part of: of a field the struct, of a parameter the action.
    pub container: Option<usize>,
    /// Its type.
    pub ty: Option<String>,
    /// The bits of its type, headers and structs added up.
    pub width: Option<u64>,
    /// The value of a constant.
    pub value: Option<String>,
    /// Its annotations, each by its span.
    pub annotations: Vec<Span>,
    /// The definition of its type, of whose parts it has a value: fields, methods.
    pub type_definition: Option<usize>,
    /// Whether it is a stack of such.
    pub is_stack: bool,
    /// The direction of a parameter.
    pub direction: Direction,
}

/// All declarations and uses of a program.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The declarations, in the order in which they stand; parts come after what they are a part of.
    pub definitions: Vec<Definition>,
    /// The uses, by place, declarations themselves left out.
    pub uses: Vec<(Span, usize)>,
}

impl Index {
    /// The definition that a place names: at a use or at its declaration.
    pub fn at(&self, file: FileId, offset: u32) -> Option<(Span, usize)> {
        let holds = |span: &Span| span.file == file && span.start <= offset && offset <= span.end;
        let from = self.uses.partition_point(|(span, _)| (span.file, span.end) < (file, offset));
        let used = self.uses[from..].iter().take_while(|(span, _)| span.file == file && span.start <= offset).find(|(span, _)| holds(span));
        used.copied().or_else(|| self.definitions.iter().position(|d| holds(&d.span)).map(|i| (self.definitions[i].span, i)))
    }

    /// The uses of a definition.
    pub fn uses_of(&self, definition: usize) -> impl Iterator<Item = Span> + '_ {
        self.uses.iter().filter(move |(_, id)| *id == definition).map(|(span, _)| *span)
    }

    /// The parts of a definition: fields, members, methods, parameters, states, what is declared inside.
    pub fn parts(&self, definition: usize) -> impl Iterator<Item = (usize, &Definition)> {
        self.definitions.iter().enumerate().filter(move |(_, d)| d.container == Some(definition))
    }
}

/// Makes the index of a checked program.
pub(crate) fn index(checked: &Checked) -> Index {
    let mut walk = Walk {
        checked,
        out: Index::default(),
        scopes: vec![HashMap::new()],
        places: HashMap::new(),
        parameters: HashMap::new(),
        container: None,
        scope: None,
        later: Vec::new(),
    };
    visit::walk_program(&mut walk, checked.program);
    walk.types();
    walk.members();
    let mut out = walk.out;
    out.uses.sort_unstable();
    out.uses.dedup();
    out
}

/// A name that is resolved when all declarations are known.
enum Later<'a> {
    Member(&'a Expr, &'a Ident),
    TypeMember(&'a TypeExpr, &'a Ident),
    Arguments(NodeId, &'a [Argument]),
    Method(NodeId, &'a Ident),
}

struct Walk<'a, 'c> {
    checked: &'c Checked<'a>,
    out: Index,
    scopes: Vec<HashMap<Symbol, usize>>,
    /// Definitions by the place of their name.
    places: HashMap<Span, usize>,
    /// Parameters by their whole span.
    parameters: HashMap<Span, usize>,
    container: Option<usize>,
    scope: Option<Span>,
    later: Vec<Later<'c>>,
}

impl<'a: 'c, 'c> Walk<'a, 'c> {
    fn scoped(&mut self, scope: Span, f: impl FnOnce(&mut Self)) {
        let outer = self.scope.replace(scope);
        self.scopes.push(HashMap::new());
        f(self);
        self.scopes.pop();
        self.scope = outer;
    }

    fn within(&mut self, container: usize, f: impl FnOnce(&mut Self)) {
        let outer = self.container.replace(container);
        f(self);
        self.container = outer;
    }

    fn define(&mut self, name: &Ident, kind: Kind, whole: Span, annotations: &[Annotation]) -> usize {
        let id = self.out.definitions.len();
        self.out.definitions.push(Definition {
            name: name.name.clone(),
            kind,
            span: name.span,
            whole,
            scope: self.scope,
            container: self.container,
            ty: None,
            width: None,
            value: None,
            annotations: annotations.iter().map(|a| a.span).collect(),
            type_definition: None,
            is_stack: false,
            direction: Direction::None,
        });
        self.places.insert(name.span, id);
        id
    }

    /// Defines a name that the innermost scope holds.
    fn declare(&mut self, name: &Ident, kind: Kind, whole: Span, annotations: &[Annotation]) -> usize {
        let id = self.define(name, kind, whole, annotations);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.name.clone(), id);
        }
        id
    }

    fn typed(&mut self, id: usize, t: &TypeExpr) {
        if let Some(ty) = self.checked.types.get(&t.id) {
            self.describe(id, &ty.clone());
        }
    }

    fn describe(&mut self, id: usize, ty: &Type) {
        let width = width(self.checked, ty, 0);
        let definition = &mut self.out.definitions[id];
        definition.width = width;
        definition.ty = (!ty.is_unknown()).then(|| ty.to_string());
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let scopes = if path.absolute { &self.scopes[..1] } else { &self.scopes[..] };
        scopes.iter().rev().find_map(|scope| scope.get(&path.name.name)).copied()
    }

    fn used(&mut self, path: &Path) {
        if let Some(id) = self.find(path) {
            self.out.uses.push((path.name.span, id));
        }
    }

    fn type_parameters(&mut self, names: &[Ident]) {
        for name in names {
            self.declare(name, Kind::TypeParameter, name.span, &[]);
        }
    }

    fn parameters(&mut self, list: &'c [Parameter]) {
        for p in list {
            visit::walk_parameter(self, p);
            let id = self.declare(&p.name, Kind::Parameter, p.span, &p.annotations);
            self.out.definitions[id].direction = p.direction;
            self.typed(id, &p.ty);
            self.parameters.insert(p.span, id);
        }
    }

    fn prototype(&mut self, id: usize, f: &'c FunctionPrototype, whole: Span) {
        self.within(id, |w| {
            w.scoped(whole, |w| {
                w.type_parameters(&f.type_parameters);
                w.type_expr(&f.return_type);
                w.parameters(&f.parameters);
            });
        });
        self.typed(id, &f.return_type);
    }

    fn structure(&mut self, d: &'c Declaration, kind: Kind, s: &'c StructDeclaration) {
        let id = self.declare(&s.name, kind, d.span, &d.annotations);
        self.within(id, |w| {
            w.scoped(d.span, |w| {
                w.type_parameters(&s.type_parameters);
                for f in &s.fields {
                    w.type_expr(&f.ty);
                    let field = w.define(&f.name, Kind::Field, f.span, &f.annotations);
                    w.typed(field, &f.ty);
                }
            });
        });
    }

    fn extern_object(&mut self, d: &'c Declaration, e: &'c ExternObject) {
        let id = self.declare(&e.name, Kind::Extern, d.span, &d.annotations);
        self.within(id, |w| {
            w.scoped(d.span, |w| {
                w.type_parameters(&e.type_parameters);
                for k in &e.constructors {
                    let constructor = w.define(&k.name, Kind::Constructor, k.span, &k.annotations);
                    w.within(constructor, |w| w.scoped(k.span, |w| w.parameters(&k.parameters)));
                }
                for m in &e.methods {
                    let method = w.define(&m.prototype.name, Kind::Method, m.span, &m.annotations);
                    w.prototype(method, &m.prototype, m.span);
                }
            });
        });
    }

    fn parser(&mut self, d: &'c Declaration, p: &'c ParserDeclaration) {
        let id = self.declare(&p.name, Kind::Parser, d.span, &d.annotations);
        self.within(id, |w| {
            w.scoped(d.span, |w| {
                w.type_parameters(&p.type_parameters);
                w.parameters(&p.parameters);
                w.parameters(&p.constructor_parameters);
                p.locals.iter().for_each(|d| w.declaration(d));
                let states: HashMap<Symbol, usize> =
                    p.states.iter().map(|s| (s.name.name.clone(), w.define(&s.name, Kind::State, s.span, &s.annotations))).collect();
                for s in &p.states {
                    w.scoped(s.span, |w| visit::walk_state(w, s));
                    let targets: Vec<&Ident> = match &s.transition {
                        Some(Transition::Direct(to)) => vec![to],
                        Some(Transition::Select(select)) => select.cases.iter().map(|c| &c.target).collect(),
                        None => Vec::new(),
                    };
                    w.out.uses.extend(targets.iter().filter_map(|to| Some((to.span, *states.get(&to.name)?))));
                }
            });
        });
    }

    fn table(&mut self, d: &'c Declaration, t: &'c TableDeclaration) {
        visit::walk_declaration(self, d);
        for p in &t.properties {
            match &p.kind {
                TablePropertyKind::Actions(list) => list.iter().for_each(|a| self.used(&a.name)),
                TablePropertyKind::Entries(list) => list.iter().for_each(|e| self.used(&e.action.name)),
                TablePropertyKind::Key(keys) => {
                    for k in keys {
                        let name = &k.match_kind.name;
                        let found = self.out.definitions.iter().position(|d| d.kind == Kind::MatchKind && d.name == name.name);
                        self.out.uses.extend(found.map(|id| (name.span, id)));
                    }
                }
                TablePropertyKind::Other(..) => {}
            }
        }
        self.declare(&t.name, Kind::Table, d.span, &d.annotations);
    }

    /// The definition of a named type.
    fn of_type(&self, n: &Named) -> Option<usize> {
        self.of_decl(n.decl)
    }

    fn of_decl(&self, id: DeclId) -> Option<usize> {
        let name = declared_name(self.checked.decls.get(id.0 as usize)?)?;
        self.places.get(&name.span).copied()
    }

    /// The definition whose parts a value of the type has, and whether it is a stack.
    fn parts_of(&self, ty: &Type) -> Option<(usize, bool)> {
        match ty {
            Type::Struct(n)
            | Type::Header(n)
            | Type::Union(n)
            | Type::Enum(n)
            | Type::SerEnum(n, _)
            | Type::Newtype(n, _)
            | Type::Extern(n)
            | Type::Parser(n)
            | Type::Control(n)
            | Type::Package(n) => Some((self.of_type(n)?, false)),
            Type::Stack(element, _) => Some((self.parts_of(element)?.0, true)),
            _ => None,
        }
    }

    fn part(&self, of: usize, name: &Symbol) -> Option<usize> {
        self.out.parts(of).find(|(_, d)| d.name == *name && d.kind != Kind::TypeParameter).map(|(id, _)| id)
    }

    /// Links each value with the definition of its type.
    fn types(&mut self) {
        let mut walk = TypesOf { found: Vec::new() };
        visit::walk_program(&mut walk, self.checked.program);
        for (name, t) in walk.found {
            let (Some(id), Some(ty)) = (self.places.get(&name.span).copied(), self.checked.types.get(&t.id)) else { continue };
            if let Some((of, is_stack)) = self.parts_of(ty) {
                let definition = &mut self.out.definitions[id];
                definition.type_definition = Some(of);
                definition.is_stack = is_stack;
            }
        }
        for (id, value) in &self.checked.constants {
            let Some(id) = self.of_decl(*id) else { continue };
            self.out.definitions[id].value = match value {
                ConstVal::Int(v) => Some(v.to_string()),
                ConstVal::Bool(v) => Some(v.to_string()),
                ConstVal::Str(v) => Some(format!("{v:?}")),
                _ => None,
            };
        }
    }

    fn members(&mut self) {
        for later in std::mem::take(&mut self.later) {
            let found = match later {
                Later::Member(base, name) => {
                    let of = self.checked.types.get(&base.id).and_then(|t| self.parts_of(t));
                    of.filter(|(_, stack)| !stack).and_then(|(of, _)| self.part(of, &name.name)).map(|id| (name.span, id))
                }
                Later::TypeMember(t, name) => match self.checked.types.get(&t.id) {
                    Some(Type::ErrorCode) => {
                        let error = self.out.definitions.iter().position(|d| d.kind == Kind::Error && d.name == name.name);
                        error.map(|id| (name.span, id))
                    }
                    Some(ty) => self.parts_of(ty).and_then(|(of, _)| self.part(of, &name.name)).map(|id| (name.span, id)),
                    None => None,
                },
                Later::Method(call, name) => match self.checked.calls.get(&call).map(|c| &c.target) {
                    Some(CallTarget::Method(decl, i)) => self.of_decl(*decl).and_then(|of| {
                        let methods = self.out.parts(of).filter(|(_, d)| d.kind == Kind::Method);
                        methods.map(|(id, _)| id).nth(*i).map(|id| (name.span, id))
                    }),
                    _ => None,
                },
                Later::Arguments(call, arguments) => {
                    let Some(info) = self.checked.calls.get(&call) else { continue };
                    for name in arguments.iter().filter_map(|a| a.name.as_ref()) {
                        let parameter = info.signature.params.iter().find(|p| p.name == name.name);
                        let id = parameter.and_then(|p| self.parameters.get(&p.span)).copied();
                        self.out.uses.extend(id.map(|id| (name.span, id)));
                    }
                    continue;
                }
            };
            self.out.uses.extend(found);
        }
    }
}

impl<'a: 'c, 'c> Visit<'c> for Walk<'a, 'c> {
    fn declaration(&mut self, d: &'c Declaration) {
        let annotations = &d.annotations;
        match &d.kind {
            DeclarationKind::Constant(c) => {
                visit::walk_declaration(self, d);
                let id = self.declare(&c.name, Kind::Constant, d.span, annotations);
                self.typed(id, &c.ty);
            }
            DeclarationKind::Variable(v) => {
                visit::walk_declaration(self, d);
                let id = self.declare(&v.name, Kind::Variable, d.span, annotations);
                self.typed(id, &v.ty);
            }
            DeclarationKind::Instantiation(i) => {
                self.type_expr(&i.ty);
                i.arguments.iter().for_each(|a| self.expr(&a.value));
                let id = self.declare(&i.name, Kind::Instance, d.span, annotations);
                self.typed(id, &i.ty);
                self.within(id, |w| w.scoped(d.span, |w| i.initializer.iter().flatten().for_each(|d| w.declaration(d))));
            }
            DeclarationKind::Header(s) => self.structure(d, Kind::Header, s),
            DeclarationKind::HeaderUnion(s) => self.structure(d, Kind::HeaderUnion, s),
            DeclarationKind::Struct(s) => self.structure(d, Kind::Struct, s),
            DeclarationKind::Enum(e) => {
                visit::walk_declaration(self, d);
                let id = self.declare(&e.name, Kind::Enum, d.span, annotations);
                if let Some(t) = &e.underlying {
                    self.typed(id, t);
                }
                self.within(id, |w| {
                    for m in &e.members {
                        w.define(&m.name, Kind::EnumMember, m.name.span, &[]);
                    }
                });
            }
            DeclarationKind::Error(names) | DeclarationKind::MatchKind(names) => {
                let kind = if matches!(d.kind, DeclarationKind::Error(_)) { Kind::Error } else { Kind::MatchKind };
                for name in names {
                    self.define(name, kind, name.span, annotations);
                }
            }
            DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => {
                visit::walk_declaration(self, d);
                let id = self.declare(&a.name, Kind::Typedef, d.span, annotations);
                self.typed(id, &a.ty);
            }
            DeclarationKind::ExternObject(e) => self.extern_object(d, e),
            DeclarationKind::ExternFunction(f) => {
                let id = self.declare(&f.name, Kind::Function, d.span, annotations);
                self.prototype(id, f, d.span);
            }
            DeclarationKind::Function(f) => {
                let id = self.declare(&f.prototype.name, Kind::Function, d.span, annotations);
                self.typed(id, &f.prototype.return_type);
                self.within(id, |w| {
                    w.scoped(d.span, |w| {
                        w.type_parameters(&f.prototype.type_parameters);
                        w.type_expr(&f.prototype.return_type);
                        w.parameters(&f.prototype.parameters);
                        w.block(&f.body);
                    });
                });
            }
            DeclarationKind::Action(a) => {
                let id = self.declare(&a.name, Kind::Action, d.span, annotations);
                self.within(id, |w| {
                    w.scoped(d.span, |w| {
                        w.parameters(&a.parameters);
                        w.block(&a.body);
                    });
                });
            }
            DeclarationKind::Table(t) => self.table(d, t),
            DeclarationKind::ValueSet(s) => {
                visit::walk_declaration(self, d);
                let id = self.declare(&s.name, Kind::ValueSet, d.span, annotations);
                self.typed(id, &s.element);
            }
            DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => {
                let kind = if matches!(d.kind, DeclarationKind::Package(_)) { Kind::Package } else { Kind::BlockType };
                let id = self.declare(&a.name, kind, d.span, annotations);
                self.within(id, |w| {
                    w.scoped(d.span, |w| {
                        w.type_parameters(&a.type_parameters);
                        w.parameters(&a.parameters);
                    });
                });
            }
            DeclarationKind::Parser(p) => self.parser(d, p),
            DeclarationKind::Control(c) => {
                let id = self.declare(&c.name, Kind::Control, d.span, annotations);
                self.within(id, |w| {
                    w.scoped(d.span, |w| {
                        w.type_parameters(&c.type_parameters);
                        w.parameters(&c.parameters);
                        w.parameters(&c.constructor_parameters);
                        c.locals.iter().for_each(|d| w.declaration(d));
                        w.block(&c.apply);
                    });
                });
            }
        }
    }

    fn block(&mut self, b: &'c Block) {
        self.scoped(b.span, |w| visit::walk_block(w, b));
    }

    fn statement(&mut self, s: &'c Statement) {
        match &s.kind {
            StatementKind::For { .. } => self.scoped(s.span, |w| visit::walk_statement(w, s)),
            StatementKind::ForIn { variable, collection, body } => self.scoped(s.span, |w| {
                match collection {
                    ForCollection::Expression(e) => w.expr(e),
                    ForCollection::Range(a, b) => {
                        w.expr(a);
                        w.expr(b);
                    }
                }
                match variable {
                    ForVariable::Declared(t, name) => {
                        w.type_expr(t);
                        let id = w.declare(name, Kind::Variable, t.span.to(name.span), &[]);
                        w.typed(id, t);
                    }
                    ForVariable::Existing(e) => w.expr(e),
                }
                w.statement(body);
            }),
            _ => visit::walk_statement(self, s),
        }
    }

    fn expr(&mut self, e: &'c Expr) {
        match &e.kind {
            ExprKind::Name(p) => self.used(p),
            ExprKind::Member(base, name) => self.later.push(Later::Member(base, name)),
            ExprKind::TypeMember(t, name) => self.later.push(Later::TypeMember(t, name)),
            ExprKind::Call { callee, arguments, .. } => {
                self.later.push(Later::Arguments(e.id, arguments));
                if let ExprKind::Member(base, name) = &callee.kind
                    && matches!(self.checked.calls.get(&e.id).map(|c| &c.target), Some(CallTarget::Method(..)))
                {
                    // By the call, since methods of one name may differ in their parameters.
                    self.later.push(Later::Method(e.id, name));
                    self.expr(base);
                    arguments.iter().for_each(|a| self.expr(&a.value));
                    if let ExprKind::Call { type_arguments, .. } = &e.kind {
                        type_arguments.iter().for_each(|t| self.type_expr(t));
                    }
                    return;
                }
            }
            ExprKind::Construct(_, arguments) => self.later.push(Later::Arguments(e.id, arguments)),
            _ => {}
        }
        visit::walk_expr(self, e);
    }

    fn type_expr(&mut self, t: &'c TypeExpr) {
        if let TypeExprKind::Name(p) | TypeExprKind::Specialized(p, _) = &t.kind {
            self.used(p);
        }
        visit::walk_type_expr(self, t);
    }

    fn annotated(&mut self, annotations: &'c [Annotation], _span: Span) {
        annotations.iter().flat_map(|a| &a.values).for_each(|e| self.expr(e));
    }
}

/// The written types of names that have one.
struct TypesOf<'a> {
    found: Vec<(&'a Ident, &'a TypeExpr)>,
}

impl<'a> Visit<'a> for TypesOf<'a> {
    fn declaration(&mut self, d: &'a Declaration) {
        match &d.kind {
            DeclarationKind::Constant(c) => self.found.push((&c.name, &c.ty)),
            DeclarationKind::Variable(v) => self.found.push((&v.name, &v.ty)),
            DeclarationKind::Instantiation(i) => self.found.push((&i.name, &i.ty)),
            DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => self.found.push((&a.name, &a.ty)),
            DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => {
                self.found.extend(s.fields.iter().map(|f| (&f.name, &f.ty)));
            }
            DeclarationKind::Function(f) => self.found.push((&f.prototype.name, &f.prototype.return_type)),
            DeclarationKind::ExternFunction(f) => self.found.push((&f.name, &f.return_type)),
            DeclarationKind::ExternObject(e) => {
                let prototypes = e.methods.iter().map(|m| &m.prototype);
                self.found.extend(prototypes.map(|f| (&f.name, &f.return_type)));
            }
            _ => {}
        }
        visit::walk_declaration(self, d);
    }

    fn parameter(&mut self, p: &'a Parameter) {
        self.found.push((&p.name, &p.ty));
        visit::walk_parameter(self, p);
    }
}

/// The bits of a value of the type, those of headers and structs added up; `None` where there is no such number.
fn width(checked: &Checked, ty: &Type, depth: u32) -> Option<u64> {
    if depth > 32 {
        return None;
    }
    match ty {
        Type::Bits { width, .. } | Type::Varbit(width) => Some(u64::from(*width)),
        Type::Bool => Some(1),
        Type::SerEnum(_, inner) | Type::Newtype(_, inner) => width(checked, inner, depth + 1),
        Type::Stack(element, size) => width(checked, element, depth + 1)?.checked_mul(u64::from(*size)),
        Type::Tuple(parts) => parts.iter().try_fold(0u64, |sum, t| sum.checked_add(width(checked, t, depth + 1)?)),
        Type::Struct(n) | Type::Header(n) => {
            let def = checked.structs.get(&n.decl)?;
            let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
            def.fields.iter().try_fold(0u64, |sum, f| sum.checked_add(width(checked, &f.ty.substitute(&map), depth + 1)?))
        }
        _ => None,
    }
}
