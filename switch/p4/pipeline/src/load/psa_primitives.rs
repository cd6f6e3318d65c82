//! Primitives of PSA's extern objects, `_Type_method`, as `psa_switch` names them. `Checksum` is ours alone.

use super::json::{Node, Result};
use super::primitives::Primitive;
use super::psa::Object;
use crate::exec::hash::Algo;
use crate::ir::*;

impl<'j> Primitive<'_, '_, 'j> {
    /// Compiles the call when it is one of PSA's; whether it is.
    pub(super) fn psa_primitive(&mut self, op: &str) -> Result<bool> {
        match op {
            "_Counter_count" => {
                let a = self.args(2)?;
                let counter = self.named(&a[0], "extern", self.objects.counters, "counter")?;
                let idx = self.scope().data(&a[1])?;
                self.codegen.push_heavy(Heavy::Count(counter, idx));
            }
            "_Meter_execute" => {
                let a = self.call.list("parameters")?;
                if !matches!(a.len(), 3 | 4) {
                    return Err(self.call.err(format!("'{op}' takes 3 or 4 parameters, found {}", a.len())));
                }
                let meter = self.named(&a[0], "extern", self.objects.meters, "meter")?;
                let before = match a.get(3) {
                    Some(n) => Some(self.scope().data(n)?),
                    None => None,
                };
                let (idx, dst) = (self.scope().data(&a[1])?, self.scope().lvalue(&a[2])?);
                self.codegen.push_heavy(Heavy::PsaMeter { meter, idx, dst, before });
            }
            "_Hash_get_hash" => {
                let a = self.args(3)?;
                let calc = self.hash(&a[0], &a[2])?;
                let dst = self.scope().lvalue(&a[1])?;
                self.codegen.push_heavy(Heavy::GetHash { dst, calc });
            }
            "_Hash_get_hash_mod" => {
                let a = self.args(5)?;
                let calc = self.hash(&a[0], &a[3])?;
                let s = self.scope();
                let (dst, base, size) = (s.lvalue(&a[1])?, s.data(&a[2])?, s.data(&a[4])?);
                self.codegen.push_heavy(Heavy::Hash { dst, base, calc, size });
            }
            "_InternetChecksum_clear" | "_Checksum_clear" => {
                let state = self.state(&self.args(1)?[0])?.0;
                self.codegen.assign(&LValue::Field(state), &Expr::Const(0.into()));
            }
            "_InternetChecksum_add" | "_InternetChecksum_subtract" => {
                let a = self.args(2)?;
                let (state, _) = self.state(&a[0])?;
                let fields = self.fields(&a[1])?;
                if !fields.iter().map(|f| f.width).sum::<u32>().is_multiple_of(16) {
                    return Err(a[1].err("an Internet checksum is over a multiple of 16 bits"));
                }
                self.codegen.push_heavy(Heavy::Sum { state, fields, subtract: op == "_InternetChecksum_subtract" });
            }
            "_InternetChecksum_get" => self.read_state(|state| mask(Expr::BitNot(Box::new(state)), 16))?,
            "_InternetChecksum_get_state" => self.read_state(|state| state)?,
            "_InternetChecksum_get_verify" => {
                let a = self.args(3)?;
                let (state, _) = self.state(&a[0])?;
                let (dst, expected) = (self.scope().lvalue(&a[1])?, self.scope().data(&a[2])?);
                let sum = mask(Expr::BitNot(Box::new(Expr::Field(state))), 16);
                let equal = Expr::Cmp(CmpOp::Eq, Box::new(expected), Box::new(sum));
                self.codegen.assign(&dst, &Expr::ToData(Box::new(equal)));
            }
            "_InternetChecksum_set_state" => {
                let a = self.args(2)?;
                let (state, _) = self.state(&a[0])?;
                let e = self.scope().data(&a[1])?;
                self.codegen.assign(&LValue::Field(state), &mask(e, 16));
            }
            "_Checksum_update" => {
                let a = self.args(2)?;
                let (state, algo) = self.state(&a[0])?;
                let fields = self.fields(&a[1])?;
                self.codegen.push_heavy(Heavy::Checksum { state, algo, fields });
            }
            "_Checksum_get" => {
                let (_, algo) = self.state(&self.args(2)?[0])?;
                self.read_state(|state| if algo == Algo::Csum16 { mask(Expr::BitNot(Box::new(state)), 16) } else { state })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `generate_digest` with PSA: a packet may send several.
    pub(super) fn pack(&mut self) -> Result<()> {
        let a = self.call.list("parameters")?;
        let list = a.last().ok_or_else(|| self.call.err("'generate_digest' takes the number of a learn list"))?;
        match self.scope().data(list)? {
            Expr::Const(c) if u16::try_from(&c).is_ok() => {
                let id = u16::try_from(&c).unwrap_or(0);
                self.codegen.push_heavy(Heavy::Pack(id.into()));
                Ok(())
            }
            _ => Err(list.err("the number of a learn list must be a constant")),
        }
    }

    fn read_state(&mut self, value: impl FnOnce(Expr) -> Expr) -> Result<()> {
        let a = self.args(2)?;
        let (state, _) = self.state(&a[0])?;
        let dst = self.scope().lvalue(&a[1])?;
        self.codegen.assign(&dst, &value(Expr::Field(state)));
        Ok(())
    }

    fn object(&self, node: &Node) -> Result<Object> {
        let value = node.get("value")?;
        let name = value.str()?;
        self.objects.externs.get(name).copied().ok_or_else(|| value.err(format!("there is no extern object '{name}' with this method")))
    }

    /// State and algorithm of a checksum.
    fn state(&self, node: &Node) -> Result<(Field, Algo)> {
        match self.object(node)? {
            Object::InternetChecksum(f) => Ok((f, Algo::Csum16)),
            Object::Checksum(f, algo) => Ok((f, algo)),
            Object::Hash(_) => Err(node.err("expected a checksum, found a hash")),
        }
    }

    /// A hash over fields, as a calculation of its own. As `psa_switch` has it, zeros stand before the fields up to a whole number
    /// of bytes, and a field counts whether its header is valid or not.
    fn hash(&mut self, object: &Node, fields: &Node) -> Result<u32> {
        let Object::Hash(algo) = self.object(object)? else {
            return Err(object.err("expected a hash, found a checksum"));
        };
        let always = self.objects.names.layout.packet_end;
        let fields = self.fields(fields)?;
        let pad = fields.iter().map(|f| f.width).sum::<u32>().wrapping_neg() % 8;
        let zeros = (pad > 0).then(|| CalcInput::Const(vec![0], pad));
        let fields = fields.into_iter().map(|f| CalcInput::Field(Field { valid: always, ..f }));
        let input = zeros.into_iter().chain(fields).collect();
        self.calculations.push(Calculation { name: String::new(), algo, input, payload: false, sum: None, short: None });
        Ok((self.calculations.len() - 1) as u32)
    }

    fn fields(&self, node: &Node) -> Result<Vec<Field>> {
        let ty = node.get("type")?;
        if ty.str()? != "field_list" {
            return Err(ty.err(format!("expected a 'field_list', found '{}'", ty.str()?)));
        }
        let items = node.get("value")?.items()?;
        items.iter().map(|item| self.objects.names.field(&item.get("value")?)).collect()
    }
}

/// The low bits of a value.
fn mask(e: Expr, bits: u32) -> Expr {
    Expr::Bin(BinOp::And, Box::new(e), Box::new(Expr::Const(((1_u64 << bits) - 1).into())))
}
