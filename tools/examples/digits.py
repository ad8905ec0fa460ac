"""The digits in all test images, from Python: digits.py BUNDLE IMAGES.npy"""
import sys

import dmxrt
import numpy

images = numpy.load(sys.argv[2])
with dmxrt.Session(sys.argv[1]) as session:
    print(session)                     # its inputs and outputs with their types and dims
    outputs = session.run(images)      # by position, or by name: session.run(image=images)
print(*outputs["probabilities"].argmax(axis=1), sep="\n")
