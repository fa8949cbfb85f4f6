"""Ways into tables for engines and people who bring options of Hudi."""
