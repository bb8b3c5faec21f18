class Compiler:
    def add_stages(self):
        pass
