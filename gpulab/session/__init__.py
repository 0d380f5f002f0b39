"""Floor 3: how a run is started, its processes, the file it leaves, and the sources that faces
read.
"""
