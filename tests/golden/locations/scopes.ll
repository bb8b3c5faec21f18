  ret void, !dbg !7
  ret void, !dbg !9
!1 = !DIFile(filename: "kernel.py", directory: "ops")
!2 = !DIFile(filename: "helper.py", directory: "")
!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 9, type: !5)
!5 = !DISubroutineType(cc: DW_CC_normal)
!6 = !DILexicalBlockFile(scope: !4, file: !2, discriminator: 0)
!7 = !DILocation(line: 7, column: 3, scope: !6, inlinedAt: !8)
!8 = !DILocation(line: 20, column: 3, scope: !4)
!9 = !DILocation(line: 12, column: 3, scope: !99)
