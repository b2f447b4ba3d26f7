package guest

import "math"

// What an instruction's bytes may begin with, and two codes that are used twice.
const (
	prefixExtra = 0x26 // the place is in the segment es
	prefixSize  = 0x66 // operands of the other size: 32 bits in 16-bit code, or 16 in 32
	prefixRex   = 0x40
	rexWide     = 0x08 // operands of 64 bits
	rexReg      = 0x04 // the high bit of modrm's register
	rexBase     = 0x01 // the high bit of the base, or of modrm's second register
	noBase      = 5    // in a SIB byte with mode 0: only a displacement
	sibFollows  = 4
)

// prefixes emits what an operand of that size needs before the code: field and
// base are the numbers of the registers used.
func (a *assembler) prefixes(size int, field, base byte) {
	if size == 16 && a.long || size == 32 && !a.long {
		a.emit(prefixSize)
	}
	rex := byte(0)
	if size == 64 {
		rex |= rexWide
	}
	if field >= 8 {
		rex |= rexReg
	}
	if base >= 8 {
		rex |= rexBase
	}
	if rex != 0 {
		a.emit(prefixRex | rex)
	}
	if rex != 0 && !a.long {
		a.fail("64-bit registers in 16-bit code")
	}
}

// encode emits an instruction with one operand in a register or in memory, and
// a register or an extension of the code in field.
func (a *assembler) encode(size int, code []byte, field byte, o operand) {
	switch o := o.(type) {
	case reg:
		a.prefixes(size, field, o.number())
		a.emit(code...)
		a.emit(0xc0 | field&7<<3 | o.number()&7)
	case mem:
		if o.extra {
			a.emit(prefixExtra)
		}
		a.prefixes(size, field, o.base.number())
		a.emit(code...)
		a.place(field&7<<3, o)
	default:
		a.fail("a number where the instruction takes a register or memory")
	}
}

// place emits modrm and what follows for a place in memory. In 16-bit code it
// knows the two kinds that the boot code uses.
func (a *assembler) place(field byte, m mem) {
	low := m.base.number() & 7
	switch small := m.at >= math.MinInt8 && m.at <= math.MaxInt8; {
	case !a.long && m.bare:
		a.emit(field | 6)
		a.immediate(imm(m.at), 16)
	case !a.long && m.base == di && m.at == 0:
		a.emit(field | 5)
	case !a.long || !m.bare && m.base.size() != 64:
		a.fail("an address of a kind that the guest has no use for")
	case m.bare:
		a.emit(field|sibFollows, sibFollows<<3|noBase)
		a.immediate(imm(m.at), 32)
	case m.at == 0 && low != noBase:
		a.emit(field | low)
		a.sib(low)
	case small:
		a.emit(0x40 | field | low)
		a.sib(low)
		a.emit(byte(m.at))
	default:
		a.emit(0x80 | field | low)
		a.sib(low)
		a.immediate(imm(m.at), 64)
	}
}

// sib emits the byte that the stack pointer as a base needs.
func (a *assembler) sib(low byte) {
	if low == sibFollows {
		a.emit(sibFollows<<3 | low)
	}
}

// wide sets the lowest bit of a code for operands of more than a byte.
func wide(code byte, size int) []byte {
	if size > 8 {
		code |= 1
	}
	return []byte{code}
}

// arithmetic emits one of the eight instructions that share an encoding.
func (a *assembler) arithmetic(n byte, to, from operand) {
	size := sizeOf(to, from)
	switch from := from.(type) {
	case reg:
		a.encode(size, wide(n<<3, size), from.number(), to)
	case mem:
		r, ok := to.(reg)
		if !ok {
			a.fail("two operands in memory")
		}
		a.encode(size, wide(n<<3|2, size), r.number(), from)
	case imm:
		r, isReg := to.(reg)
		first := isReg && r.number() == 0
		switch short := from >= math.MinInt8 && from <= math.MaxInt8; {
		case first && (size == 8 || !short):
			a.prefixes(size, 0, 0)
			a.emit(wide(n<<3|4, size)...)
			a.immediate(from, size)
		case size != 8 && short:
			a.encode(size, []byte{0x83}, n, to)
			a.immediate(from, 8)
		default:
			a.encode(size, wide(0x80, size), n, to)
			a.immediate(from, size)
		}
	}
}

func (a *assembler) add(to, from operand) { a.arithmetic(0, to, from) }
func (a *assembler) or(to, from operand)  { a.arithmetic(1, to, from) }
func (a *assembler) and(to, from operand) { a.arithmetic(4, to, from) }
func (a *assembler) sub(to, from operand) { a.arithmetic(5, to, from) }
func (a *assembler) xor(to, from operand) { a.arithmetic(6, to, from) }
func (a *assembler) cmp(to, from operand) { a.arithmetic(7, to, from) }

func (a *assembler) mov(to, from operand) {
	size := sizeOf(to, from)
	switch from := from.(type) {
	case reg:
		a.encode(size, wide(0x88, size), from.number(), to)
	case mem:
		r, ok := to.(reg)
		if !ok {
			a.fail("two operands in memory")
		}
		a.encode(size, wide(0x8a, size), r.number(), from)
	case imm:
		a.movImmediate(size, to, from)
	}
}

func (a *assembler) movImmediate(size int, to operand, v imm) {
	r, isReg := to.(reg)
	fits := v >= math.MinInt32 && v <= math.MaxInt32
	switch {
	case isReg && size == 64 && !fits:
		a.prefixes(size, 0, r.number())
		a.emit(0xb8 | r.number()&7)
		a.quadWord(uint64(v))
	case isReg && size != 64:
		a.prefixes(size, 0, r.number())
		code := byte(0xb8)
		if size == 8 {
			code = 0xb0
		}
		a.emit(code | r.number()&7)
		a.immediate(v, size)
	default:
		a.encode(size, wide(0xc6, size), 0, to)
		a.immediate(v, size)
	}
}

func (a *assembler) test(to, from operand) {
	size := sizeOf(to, from)
	switch from := from.(type) {
	case reg:
		a.encode(size, wide(0x84, size), from.number(), to)
	case imm:
		if to == al {
			a.emit(0xa8)
		} else {
			a.encode(size, wide(0xf6, size), 0, to)
		}
		a.immediate(from, size)
	default:
		a.fail("test takes a register or a number second")
	}
}

func (a *assembler) inc(o operand) { a.encode(sizeOf(o), wide(0xfe, sizeOf(o)), 0, o) }
func (a *assembler) dec(o operand) { a.encode(sizeOf(o), wide(0xfe, sizeOf(o)), 1, o) }
func (a *assembler) mul(o operand) { a.encode(sizeOf(o), wide(0xf6, sizeOf(o)), 4, o) }
func (a *assembler) div(o operand) { a.encode(sizeOf(o), wide(0xf6, sizeOf(o)), 6, o) }

func (a *assembler) imul(to, by reg) {
	a.encode(to.size(), []byte{0x0f, 0xaf}, to.number(), by)
}

func (a *assembler) shl(o operand, by imm) { a.shift(4, o, by) }
func (a *assembler) shr(o operand, by imm) { a.shift(5, o, by) }

func (a *assembler) shift(n byte, o operand, by imm) {
	a.encode(sizeOf(o), wide(0xc0, sizeOf(o)), n, o)
	a.immediate(by, 8)
}

func (a *assembler) push(r reg) {
	a.prefixes(0, 0, r.number())
	a.emit(0x50 | r.number()&7)
}

func (a *assembler) pushImm(v imm) {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		a.emit(0x6a)
		a.immediate(v, 8)
		return
	}
	a.emit(0x68)
	a.immediate(v, 64)
}

func (a *assembler) pop(r reg) {
	a.prefixes(0, 0, r.number())
	a.emit(0x58 | r.number()&7)
}

func (a *assembler) movSeg(to segment, from reg) { a.emit(0x8e, 0xc0|byte(to)<<3|byte(from&7)) }
func (a *assembler) toControl(to control, from reg) {
	a.emit(0x0f, 0x22, 0xc0|byte(to)<<3|byte(from&7))
}
func (a *assembler) fromControl(to reg, from control) {
	a.emit(0x0f, 0x20, 0xc0|byte(from)<<3|byte(to&7))
}
func (a *assembler) lgdt(m mem) { a.encode(0, []byte{0x0f, 0x01}, 2, m) }
func (a *assembler) lidt(m mem) { a.encode(0, []byte{0x0f, 0x01}, 3, m) }
func (a *assembler) ltr(r reg)  { a.emit(0x0f, 0x00, 0xd8|byte(r&7)) }

// out and in use a port below 256; outPort and inPort the one in dx.
func (a *assembler) out(port imm) { a.emit(0xe6); a.immediate(port, 8) }
func (a *assembler) in(port imm)  { a.emit(0xe4); a.immediate(port, 8) }
func (a *assembler) outPort(r reg) {
	a.prefixes(r.size(), 0, 0)
	a.emit(wide(0xee, r.size())...)
}
func (a *assembler) inPort(r reg) {
	a.prefixes(r.size(), 0, 0)
	a.emit(wide(0xec, r.size())...)
}

func (a *assembler) jmp(label string)   { a.branch(label, []byte{0xeb}, []byte{0xe9}) }
func (a *assembler) call(label string)  { a.branch(label, nil, []byte{0xe8}) }
func (a *assembler) loop(label string)  { a.branch(label, []byte{0xe2}, nil) }
func (a *assembler) jrcxz(label string) { a.branch(label, []byte{0xe3}, nil) }
func (a *assembler) jc(label string)    { a.jumpIf(0x2, label) }
func (a *assembler) jnc(label string)   { a.jumpIf(0x3, label) }
func (a *assembler) jz(label string)    { a.jumpIf(0x4, label) }
func (a *assembler) jnz(label string)   { a.jumpIf(0x5, label) }
func (a *assembler) jbe(label string)   { a.jumpIf(0x6, label) }
func (a *assembler) js(label string)    { a.jumpIf(0x8, label) }
func (a *assembler) jns(label string)   { a.jumpIf(0x9, label) }

func (a *assembler) jumpIf(condition byte, label string) {
	a.branch(label, []byte{0x70 | condition}, []byte{0x0f, 0x80 | condition})
}

// jmpFar loads the code segment too: a 16-bit jump out of real mode.
func (a *assembler) jmpFar(selector uint16, to imm) {
	a.emit(0xea)
	a.immediate(to, 16)
	a.word(selector)
}

func (a *assembler) interrupt(n byte) { a.emit(0xcd, n) }
func (a *assembler) cli()             { a.emit(0xfa) }
func (a *assembler) sti()             { a.emit(0xfb) }
func (a *assembler) cld()             { a.emit(0xfc) }
func (a *assembler) clc()             { a.emit(0xf8) }
func (a *assembler) stc()             { a.emit(0xf9) }
func (a *assembler) hlt()             { a.emit(0xf4) }
func (a *assembler) ret()             { a.emit(0xc3) }
func (a *assembler) iretq()           { a.emit(0x48, 0xcf) }
func (a *assembler) rdtsc()           { a.emit(0x0f, 0x31) }
func (a *assembler) rdmsr()           { a.emit(0x0f, 0x32) }
func (a *assembler) wrmsr()           { a.emit(0x0f, 0x30) }
func (a *assembler) lodsb()           { a.emit(0xac) }
func (a *assembler) stosq()           { a.emit(0x48, 0xab) }
func (a *assembler) repStosq()        { a.emit(0xf3, 0x48, 0xab) }

func (a *assembler) repStosd() {
	a.prefixes(32, 0, 0)
	a.emit(0xf3, 0xab)
}

func (a *assembler) repMovsd() {
	a.prefixes(32, 0, 0)
	a.emit(0xf3, 0xa5)
}
