"""`bifolio import strapi`: imports the content of a Strapi installation."""
