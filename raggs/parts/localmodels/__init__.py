"""Language models that run on this machine, from a folder that the user has: texts in, numbers out, nobody is asked.

A model is a folder with an ONNX file and a tokenizer.json. Nothing is ever downloaded, and torch is never needed: the
extra `local` brings onnxruntime and tokenizers, which are imported when a model is first used.
"""
