
import types
from triton.backends.compiler import BaseBackend


class TinyBackend(BaseBackend):
    binary_ext = "tinybin"

    @staticmethod
    def supports_target(target):
        return target.backend == "tiny"

    def hash(self):
        return "tiny"

    def parse_options(self, options):
        values = dict(num_warps=4, num_ctas=1, num_stages=1, cluster_dims=(1, 1, 1), enable_fp_fusion=True, debug=False,
                      backend_name="tiny", arch=self.target.arch, warp_size=1, extern_libs=None, sanitize_overflow=False,
                      launch_cooperative_grid=False, supported_fp8_dtypes=(), deprecated_fp8_dot_operand_dtypes=(),
                      default_dot_input_precision="ieee", allowed_dot_input_precisions=("ieee",),
                      max_num_imprecise_acc_default=0, instrumentation_mode="", sanitize=False, fpsan_homomorphic_casts=False)
        return types.SimpleNamespace(**values | {k: v for k, v in options.items() if k in values and v is not None})

    def pack_metadata(self, metadata):
        return ()

    def get_codegen_implementation(self, options):
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self):
        return {}

    def load_dialects(self, context):
        pass

    def add_stages(self, stages, options, language):
        stages["ttir"] = lambda src, metadata: src
        stages["tinyasm"] = lambda src, metadata: "\n".join(
            f"op {LINE}{n}" for n, line in enumerate(str(src).splitlines()) if "tt." in line)
        stages["tinybin"] = lambda src, metadata: bytes([0, {VERSION}]) + src.encode()
