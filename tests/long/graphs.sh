# 3,000 random networks of PyTorch as ONNX files (tests/onnx/slow_graphs.sh says of what): about 6 minutes.

GRAPHS='1000 3000' exec sh tests/onnx/slow_graphs.sh
