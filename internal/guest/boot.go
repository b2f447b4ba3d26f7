package guest

// Where the guest keeps what the processor needs.
const (
	pageTables    = 0x10000 // 6 pages: the root, one table of 4 GiB, four directories
	tableFlags    = 0x07    // present, writable, for ring 3 too
	hugePageFlags = 0x87    // the same, 2 MiB
	hugePage      = 0x200000

	codeSelector = 0x08 // 64-bit code of ring 0
	dataSelector = 0x10
)

// bootSector is real mode: it loads what the BIOS has not, builds page tables
// and leaves for long mode. The sector also holds what must lie low: handlers
// and tables of the kernel, up to the signature at its end.
func bootSector(a *assembler, b Block) {
	a.jmp("loaded by a BIOS")
	a.jmp("loaded by the firmware") // at Origin+2: everything is in memory already
	a.emit(b.bytes()...)

	a.label("loaded by a BIOS") // dl is the drive
	a.xor(ax, ax)
	a.movSeg(es, ax)
	a.mov(bx, imm(Origin+sectorSize))
	a.mov(cx, imm(2)) // cylinder 0, the second sector
	a.mov(dh, imm(0))
	a.mov(ax, imm(0x0200+sectors-1)) // read
	a.interrupt(0x13)
	a.jc("loaded by a BIOS")

	a.label("loaded by the firmware")
	a.cli()
	a.cld()
	a.xor(ax, ax)
	a.movSeg(ds, ax)
	a.movSeg(ss, ax)
	a.mov(sp, imm(Origin))
	a.in(0x92)
	a.or(al, imm(2))
	a.out(0x92) // address line 20, or every second MiB would be missing
	buildPageTables(a)
	enterLongMode(a)

	a.long = true
	kernelEntry(a)
	kernelTables(a)
	a.pad(sectorSize - 2)
	a.word(0xaa55) // what makes it a boot sector
}

// buildPageTables maps 4 GiB one to one in pages of 2 MiB, for ring 3 too.
func buildPageTables(a *assembler) {
	a.mov(ax, imm(pageTables>>4))
	a.movSeg(es, ax)
	a.xor(di, di)
	a.xor(eax, eax)
	a.mov(cx, imm(6*PageSize/4))
	a.repStosd()
	a.xor(di, di)
	a.mov(doubleAt(inExtra(di)), imm(pageTables+PageSize|tableFlags))
	a.mov(di, imm(PageSize))
	a.mov(eax, imm(pageTables+2*PageSize|tableFlags))
	a.label("directory")
	a.mov(inExtra(di), eax)
	a.add(di, imm(8))
	a.add(eax, imm(PageSize))
	a.cmp(di, imm(PageSize+4*8))
	a.jc("directory")
	a.mov(di, imm(2*PageSize))
	a.mov(eax, imm(hugePageFlags))
	a.label("huge page")
	a.mov(inExtra(di), eax)
	a.add(di, imm(8))
	a.add(eax, imm(hugePage))
	a.jnc("huge page") // until 4 GiB, where the address wraps
}

// enterLongMode goes there straight from real mode.
func enterLongMode(a *assembler) {
	a.mov(eax, imm(pageTables))
	a.toControl(cr3, eax)
	a.fromControl(eax, cr4)
	a.or(al, imm(0x20)) // long addresses in page tables
	a.toControl(cr4, eax)
	a.mov(ecx, imm(0xc0000080))
	a.rdmsr()
	a.or(ah, imm(1)) // long mode
	a.wrmsr()
	a.lgdt(absolute(a.addr("descriptors")))
	a.fromControl(eax, cr0)
	a.or(eax, imm(0x80000001)) // paging and protection
	a.toControl(cr0, eax)
	a.jmpFar(codeSelector, a.addr("kernel"))
}

// resetStub is the firmware: at the ROM's top, in real mode. The ROM is visible
// at segment 0xf000 too, from where the program is copied to where a BIOS would
// have loaded it.
func resetStub(a *assembler, size int) {
	a.label("stub")
	a.cli()
	a.cld()
	a.mov(ax, imm(0xf000))
	a.movSeg(ds, ax)
	a.xor(ax, ax)
	a.movSeg(es, ax)
	a.mov(di, imm(Origin))
	a.xor(si, si)
	a.mov(cx, imm(size/4))
	a.repMovsd()
	a.jmpFar(0, Origin+2)
}
