# Course program 3 (2.4): a schedule of `mm_relu` (p02_mm_relu.py) as a trace, with jfactor 8. One step a line; what a
# step returns has a name of the trace's own.
#
#   bevel opt p02_mm_relu.py --schedule p03_transform_8.py --function mm_relu              the program that it makes
#   bevel bench p02_mm_relu.py --schedule p03_transform_8.py --function mm_relu --no-opt   how fast that is
Y = sch.get_sblock(name="Y", func_name="mm_relu")
C = sch.get_sblock(name="C", func_name="mm_relu")
i, j, k = sch.get_loops(block=Y)
j0, j1 = sch.split(loop=j, factors=[None, 8])
sch.reorder(j0, k, j1)
sch.reverse_compute_at(block=C, loop=j0)
Y_init = sch.decompose_reduction(block=Y, loop=k)
