class Heartbeat:
    def __init__(self, storage, instant, interval): pass
    def start(self): pass
    def stop(self): pass
def is_alive(storage, instant, interval_ms, misses): return False
def remove_heartbeat(storage, instant): pass
