target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(3) %l, ptr addrspace(8) %r, i32 %x) #0 {
  %y = call i32 @llvm.ctlz.i32(i32 %x)
  tail call void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) %r, ptr addrspace(3) nonnull %l, i32 16, i32 %y, i32 0, i32 0, i32 0), !alias.scope !0
  %z = select i1 true, float 0xFFF0000000000000, float 0xFFF0000000000000
  store float %z, ptr addrspace(1) %p, align 4
  ret void
}

declare i32 @llvm.ctlz.i32(i32)

declare void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) readonly captures(none), ptr addrspace(3) writeonly captures(none), i32 immarg, i32, i32, i32 immarg, i32 immarg) #1

attributes #0 = { nounwind }
attributes #1 = { nocallback nounwind }

!0 = !{!1}
!1 = distinct !{!1, !2}
!2 = distinct !{!2}
