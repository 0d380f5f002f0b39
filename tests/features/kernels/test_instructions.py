"""Instructions of machine code and of PTX by class: those that tell kernels apart, as assemblers
write them.
"""

import pytest

from gpulab.features.kernels.instructions import count_ptx, count_sass, entry_body

SASS = {
    "LDG.E.128.CONSTANT R4,desc[UR4][R2.64]": {"load_128": 1, "read_only_load": 1},
    "LD.E.S16 R4,[R2.64]": {"load_16": 1},
    "STG.E.EF.128 desc[UR4][R2.64],R4": {"store_128": 1},
    "LDS.U.128 R4,[R0]": {"shared_load_128": 1},
    "STS [R0+0x400],R4": {"shared_store_32": 1},
    "LDSM.16.M88.4 R4,[R5]": {"shared_load_128": 1},
    "LDL.64 R4,[R1]": {"local_load": 1},
    "STL [R1+0x4],R4": {"local_store": 1},
    "UBLKCP.S.G [UR4],[UR6],UR8": {"bulk_copy": 1},
    "LDC R1,c[0x0][0x28]": {},
    "FFMA R0,R1,R2,R3": {"fma": 1},
    "FADD.FTZ R0,R1,-R2": {"add_or_multiply": 1},
    "IMAD.MOV.U32 R3,RZ,RZ,RZ": {},
    "HFMA2 R9,R8,R9,R9": {"fma": 1},
    "HFMA2.MMA R9,R8,R7,-RZ": {"add_or_multiply": 1},
    "HMMA.16816.F32 R12,R4,R4,RZ": {"mma": 1},
    "HGMMA.64x256x16.F32 R24,gdesc[UR8],R24": {"wgmma": 1},
    "UTCHMMA gdesc[UR4],gdesc[UR6],tmem[UR8],tmem[UR10],idesc[UR11],UP0": {"tcgen05": 1},
    "SHFL.DOWN PT,R3,R2,0x10,0x1f": {"shuffle": 1},
    "BAR.SYNC.DEFER_BLOCKING 0x0": {"barrier": 1},
    "BSSY B0,0x1c0": {"divergent_branch": 1},
    "BSYNC B0": {},
    "MUFU.RCP R4,R5": {"special": 1},
    "ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU PT,RZ,[R2.64],R5": {"atomic": 1},
    "REDUX.SUM UR4,R5": {"shuffle": 1},
    "@P0 EXIT": {},
    "@P0": {},
    "": {},
    "WHATEVER.IT.IS": {},
    "LDG": {"load_32": 1},
}


def test_an_instruction_of_machine_code_is_of_its_class():
    expected = {line: {"all": 1, **classes} for line, classes in SASS.items()}
    assert {line: count_sass([line]) for line in SASS} == expected


def test_a_branch_that_goes_back_is_a_loop():
    body = [
        "S2R R0,SR_TID.X",
        "@P0 BRA 0x40",
        "IADD3 R0,R0,0x1,RZ",
        "@!P0 BRA P1, 0x20",
        "@P1 BRA 0x20",
    ]
    assert count_sass(body) == {"all": 5, "branch": 1, "loop": 2}
    assert count_sass(["BRA 0x0"]) == {"all": 1, "loop": 1}, "to itself"
    assert count_sass(["BRA `(.L_x_1)", "BRX R2 -0x10", "CALL.REL.NOINC $f"]) == {
        "all": 3,
        "branch": 3,
    }


PTX = {
    "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];": {"load_128": 1, "read_only_load": 1},
    "ld.global.f32 %f1, [%rd1+4];": {"load_32": 1},
    "st.shared.f32 [%r1], %f1;": {"shared_store_32": 1},
    "ld.local.f32 %f1, [%rd1];": {"local_load": 1},
    "ld.param.u64 %rd1, [copy_param_0];": {},
    "cp.async.cg.shared.global [%r1], [%rd1], 16;": {"async_copy": 1},
    "cp.async.commit_group;": {},
    "fma.rn.f32 %f1, %f2, %f3, %f4;": {"fma": 1},
    "add.f32 %f1, %f2, %f3;": {"add_or_multiply": 1},
    "add.s32 %r1, %r2, 1;": {},
    "bar.sync 0;": {"barrier": 1},
    "shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;": {"shuffle": 1},
    "atom.global.add.f32 %f1, [%rd1], %f2;": {"atomic": 1},
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1}, {%r2}, {%f1};": {
        "mma": 1
    },
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 1;": {
        "wgmma": 1
    },
    "@%p1 tcgen05.mma.cta_group::1.kind::f16 [ %r1 + 0 ], %rd1, %rd2, %r2, %p2;": {"tcgen05": 1},
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier [%r1], [%rd1], [%r4];": {
        "bulk_copy": 1
    },
    "ex2.approx.f32 %f1, %f2;": {"special": 1},
    "$L__BB0_1: ": None,
    ".reg .f32 %f<4>;": None,
    "// ld.global.f32 %f1, [%rd1];": None,
    "": None,
}


def test_a_line_of_ptx_is_of_the_same_class():
    expected = {
        line: {} if classes is None else {"all": 1, **classes} for line, classes in PTX.items()
    }
    assert {line: count_ptx(f"\t{line}\n") for line in PTX} == expected


def test_a_branch_to_a_label_above_is_a_loop():
    body = (
        "bra.uni $A;\n$B:\nadd.f32 %f1, %f1, %f2;\n@%p1 bra $B;\n$A:\n@!%p2 bra $C;\nbra "
        "$B;\n$C:\nret;\n"
    )
    assert count_ptx(body) == {"all": 6, "branch": 2, "loop": 2, "add_or_multiply": 1}


SEVERAL = """
.version 9.0
.visible .func (.param .b32 r) copy(
	.param .b64 p
)
{
	mov.b32 %r9, 9;
}
.visible .entry copy_several(
	.param .u64 copy_several_param_0
)
.maxntid 256, 1, 1
{
	mov.b32 %r1, 1;
	{
	.reg .b32 t;
	}
	ret;
}
.visible .entry copy(
	.param .u64 copy_param_0
)
{
	mov.b32 %r2, 2;
}
"""


def test_the_body_of_one_kernel_is_that_of_its_entry():
    assert entry_body(SEVERAL, "copy").split() == ["{", "mov.b32", "%r2,", "2;"]
    assert entry_body(SEVERAL, "copy_several").split()[-3:] == ["t;", "}", "ret;"]
    assert "%r2" not in entry_body(SEVERAL, "copy_several")


@pytest.mark.parametrize(
    "ptx", ["", ".entry copy(", ".visible .entry copy(\n)\n;\n", ".func copy(\n)\n{\nret;\n}\n"]
)
def test_without_a_body_there_is_none(ptx):
    assert entry_body(ptx, "copy") == ""
    assert count_ptx("") == {}
