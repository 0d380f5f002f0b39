"""Instructions of machine code by class: those that tell kernels apart, as the assembler writes
them.
"""

import pytest

from gpulab.features.kernels.instructions import count_sass, entry_body

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
