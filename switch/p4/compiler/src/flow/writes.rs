//! What is written, and the validity of headers that it brings.

use fairlane_syntax::ast::*;

use super::reads::is_place;
use super::state::Validity;
use super::storage::{Kind, Place};
use super::Flow;
use crate::types::Type;

impl<'a> Flow<'a> {
    /// `target = value`
    pub(super) fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        self.go_to(target, true);
        self.read(value);
        self.written(target);
        let (places, exact) = self.places_of(target);
        match places.as_slice() {
            [place] if exact && !self.in_union(target) => {
                let place = place.clone();
                self.copy_validity(&place, value);
            }
            [place, ..] if place.shape.is_header() => {
                let valid = self.brings(value);
                self.set_header(target, valid);
            }
            // A whole element of unknown index: what it brings may be valid, what the others hold stays.
            _ => places.iter().for_each(|p| self.set_headers(p, Validity::Yes)),
        }
    }

    /// The leaves of a place hold something now.
    pub(super) fn written(&mut self, target: &'a Expr) {
        for p in self.places_of(target).0 {
            self.now.set_unwritten(p.leaves(), false);
        }
    }

    /// An argument that the callee fills: written, and its headers valid.
    pub(super) fn write_all(&mut self, target: &'a Expr) {
        self.go_to(target, true);
        self.written(target);
        if matches!(self.type_of(target), Some(Type::Header(_))) {
            self.set_header(target, Validity::Yes);
        } else {
            self.places_of(target).0.iter().for_each(|p| self.set_headers(p, Validity::Yes));
        }
    }

    /// All headers of a place become valid or not.
    pub(super) fn set_headers(&mut self, place: &Place, valid: Validity) {
        place.headers().for_each(|h| self.now.set_valid(h, valid));
    }

    fn in_union(&self, e: &Expr) -> bool {
        matches!(&e.kind, ExprKind::Member(base, _) if matches!(self.type_of(base), Some(Type::Union(_))))
    }

    /// A header becomes valid or not; in a union the other members become invalid. Where nobody knows which element it is,
    /// only what becomes valid is noted.
    pub(super) fn set_header(&mut self, header: &'a Expr, valid: Validity) {
        let (places, exact) = self.places_of(header);
        if !exact && valid != Validity::Yes {
            return;
        }
        if let (true, true, ExprKind::Member(base, _)) = (exact, self.in_union(header), &header.kind) {
            for union in self.places_of(base).0 {
                self.set_headers(&union, Validity::No);
                self.now.set_valid(union.header, valid);
            }
        }
        places.iter().for_each(|p| self.now.set_valid(p.header, valid));
    }

    /// Whether a value is a valid header.
    fn brings(&self, value: &'a Expr) -> Validity {
        match &value.kind {
            ExprKind::InvalidHeader | ExprKind::Dots => Validity::No,
            ExprKind::Cast(_, inner) => self.brings(inner),
            ExprKind::Ternary(_, t, f) => self.brings(t).join(self.brings(f)),
            _ if is_place(value) => self.validity_of(value),
            _ => Validity::Yes,
        }
    }

    /// The headers of a place become what those of a value are.
    pub(super) fn copy_validity(&mut self, place: &Place, value: &'a Expr) {
        if place.shape.headers == 0 {
            return;
        }
        match &value.kind {
            ExprKind::Cast(_, inner) => self.copy_validity(place, inner),
            ExprKind::InvalidHeader | ExprKind::Dots => self.set_headers(place, Validity::No),
            ExprKind::Ternary(_, t, f) => {
                let mut other = self.now.clone();
                self.copy_validity(place, t);
                std::mem::swap(&mut self.now, &mut other);
                self.copy_validity(place, f);
                self.now.join(&other);
            }
            ExprKind::Record { fields, .. } if matches!(place.shape.kind, Kind::Struct(_)) => {
                self.set_headers(place, Validity::No);
                for (name, e) in fields {
                    if let Some(part) = place.field(&name.name) {
                        self.copy_validity(&part, e);
                    }
                }
            }
            ExprKind::List { elements, .. } if !place.shape.is_header() => {
                self.set_headers(place, Validity::No);
                for (i, e) in elements.iter().enumerate() {
                    let part = match &place.shape.kind {
                        Kind::Struct(fields) => fields.get(i).map(|f| place.part(f)),
                        _ => place.element(i as u32),
                    };
                    if let Some(part) = part {
                        self.copy_validity(&part, e);
                    }
                }
            }
            _ if is_place(value) => {
                let (from, exact) = self.places_of(value);
                match from.as_slice() {
                    [from] if exact => self.copy_headers(place, from),
                    [] => self.set_headers(place, Validity::Yes),
                    _ => {
                        let valid = self.validity_of(value);
                        self.set_headers(place, valid);
                    }
                }
            }
            _ => self.set_headers(place, Validity::Yes),
        }
    }

    /// The headers of a place become what those of another one of its form are.
    pub(super) fn copy_headers(&mut self, to: &Place, from: &Place) {
        if to.shape.headers != from.shape.headers {
            self.set_headers(to, Validity::Yes);
            return;
        }
        let values: Vec<Validity> = from.headers().map(|h| self.now.validity(h)).collect();
        to.headers().zip(values).for_each(|(h, v)| self.now.set_valid(h, v));
    }
}
